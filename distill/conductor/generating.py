"""Plans written by a causal language model in this process: batches, greedy or drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

from distill.conductor.constraint import PlanConstraint
from harness.engine.learned import letters_of
from harness.engine.request import Message
from harness.routing.base import RouterUsage

MAX_NEW = 160
LETTERS = ascii_uppercase


@dataclass(frozen=True)
class Said:
    text: str
    usage: RouterUsage


def generate(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[list[Message]],
    *,
    max_new: int = MAX_NEW,
    temperature: float = 0.0,
    batch: int = 32,
    constrained: bool = False,
) -> list[Said]:
    """One text per prompt, in order. `temperature` 0 is greedy; else draws come from torch's own generator.

    `constrained`: only tokens after which a plan is still possible (`constraint`).
    """
    import torch
    from transformers import GenerationConfig

    drawn = {"do_sample": True, "temperature": temperature, "top_k": 0} if temperature > 0 else {"do_sample": False}
    config = GenerationConfig(  # type: ignore[no-untyped-call]
        max_new_tokens=max_new, pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id, **drawn
    )
    texts = [tokenizer.apply_chat_template(p, tokenize=False, add_generation_prompt=True) for p in prompts]
    rows = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    order = sorted(range(len(rows)), key=lambda place: len(rows[place]))
    said: dict[int, Said] = {}
    was_training = model.training
    model.eval()
    with torch.inference_mode():
        for start in range(0, len(order), batch):
            places = order[start : start + batch]
            padded = tokenizer.pad(
                {"input_ids": [rows[place] for place in places]}, padding_side="left", return_tensors="pt"
            ).to(model.device)
            asked = padded["input_ids"].shape[1]
            letters = sorted({letter for place in places for letter in letters_of(prompts[place])})
            only = [PlanConstraint(tokenizer, asked, letters or LETTERS)] if constrained else []
            out = model.generate(**padded, generation_config=config, logits_processor=only)[:, asked:]
            for place, tokens in zip(places, out.tolist(), strict=True):
                said[place] = _said(tokenizer, tokens, len(rows[place]))
    model.train(was_training)
    return [said[place] for place in range(len(rows))]


def _said(tokenizer: Any, tokens: list[int], asked: int) -> Said:
    if tokenizer.eos_token_id in tokens:
        tokens = tokens[: tokens.index(tokenizer.eos_token_id) + 1]
    text = tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return Said(text, RouterUsage(asked, len(tokens)))
