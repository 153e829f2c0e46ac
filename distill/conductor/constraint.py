"""Constrained decoding: only text that is, or can still become, a plan in the grammar.

The grammar as a regular expression, for servers that take one (vLLM's `structured_outputs_regex`), and a logits
processor for transformers. That every step is seen by a later one is left to the check: it is no regular language.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.engine.plan.grammar import MAX_STEPS

if TYPE_CHECKING:
    import torch

_TEXT = r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-f]{4})+"'
_FIRST_TRIED = 64


def plan_regex(letters: Sequence[str], max_steps: int = MAX_STEPS) -> str:
    """Three lists of one length from 1 to `max_steps`, workers among `letters`, access to earlier steps only."""
    return "|".join(f"(?:{_of_length(letters, count)})" for count in range(1, max_steps + 1))


def _of_length(letters: Sequence[str], count: int) -> str:
    workers = ", ".join(f'"[{"".join(letters)}]"' for _ in range(count))
    texts = ", ".join(_TEXT for _ in range(count))
    access = ", ".join(_access(number) for number in range(1, count + 1))
    return rf"workers = \[{workers}\]\nsubtasks = \[{texts}\]\naccess = \[{access}\]"


def _access(number: int) -> str:
    """Of step `number`: none, all, or earlier steps."""
    if number == 1:
        return '"none"'
    earlier = f"[1-{number - 1}]"
    return rf'(?:"none"|"all"|\[{earlier}(?:, {earlier})*\])'


class PlanConstraint:
    """A logits processor: tokens after which no plan is possible get -inf. The end is allowed behind a whole plan.

    The likeliest tokens are tried first, so that it costs little where the model writes plans anyway.
    """

    def __init__(self, tokenizer: Any, prompt_tokens: int, letters: Sequence[str], max_steps: int = MAX_STEPS) -> None:
        import regex

        self._pattern = regex.compile(plan_regex(letters, max_steps))
        self._tokenizer = tokenizer
        self._start = prompt_tokens

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        import torch

        allowed = torch.full_like(scores, -torch.inf)
        for row, ids in enumerate(input_ids[:, self._start :].tolist()):
            kept = self._kept(ids, scores[row])
            allowed[row, kept] = scores[row, kept]
        return allowed

    def _kept(self, ids: list[int], scores: torch.Tensor) -> list[int]:
        end = self._tokenizer.eos_token_id
        if end in ids:
            return [end]  # the row is over; others go on
        text = self._text(ids)
        whole = self._pattern.fullmatch(text) is not None
        order = scores.argsort(descending=True).tolist()
        for tried in (order[:_FIRST_TRIED], order):
            kept = [token for token in tried if self._fits(ids, token, end, whole, text)]
            if kept:
                return kept
        return [end]  # the tokenizer has no way on; what is there is no plan, and earns nothing

    def _fits(self, ids: list[int], token: int, end: int, whole: bool, text: str) -> bool:
        if token == end:
            return whole
        longer = self._text([*ids, token])
        return len(longer) > len(text) and self._pattern.fullmatch(longer, partial=True) is not None

    def _text(self, ids: list[int]) -> str:
        said: str = self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return said
