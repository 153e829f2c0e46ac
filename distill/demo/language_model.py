"""`python -m distill.demo.language_model FOLDER`: CPU seconds that a causal model takes for the prompts on stdin."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from distill.small_model import load


def main() -> None:
    import torch

    tokenizer, model = load(Path(sys.argv[1]))
    prompts = sys.stdin.read().split("\0")
    with torch.inference_mode():
        model(**tokenizer(prompts[0], return_tensors="pt"))
        before = time.process_time()
        for prompt in prompts:
            model(**tokenizer(prompt, return_tensors="pt")).logits[0, -1].log_softmax(-1)
    sys.stdout.write(f"{time.process_time() - before}\n")


if __name__ == "__main__":
    main()
