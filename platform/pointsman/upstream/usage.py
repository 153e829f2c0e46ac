"""What a reply says it used. Cached and reasoning tokens are parts of the input and output, never added."""

from __future__ import annotations

from typing import Any

import msgspec

CHARS_PER_TOKEN = 4


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one call; `estimated` where the provider gave none."""

    input: int
    output: int
    cached: int = 0
    reasoning: int = 0
    estimated: bool = False

    @classmethod
    def of(cls, value: Any) -> Usage | None:
        """From an OpenAI `usage` object; None where it is absent or says nothing usable."""
        if not isinstance(value, dict):
            return None
        given, answered = _count(value.get("prompt_tokens")), _count(value.get("completion_tokens"))
        if given is None or answered is None:
            return None
        cached = _count(_detail(value, "prompt_tokens_details", "cached_tokens")) or 0
        reasoning = _count(_detail(value, "completion_tokens_details", "reasoning_tokens")) or 0
        return cls(given, answered, min(cached, given), min(reasoning, answered))

    @classmethod
    def estimate(cls, input_tokens: int, output_chars: int) -> Usage:
        return cls(input_tokens, -(-output_chars // CHARS_PER_TOKEN), estimated=True)


def _detail(value: dict[str, Any], group: str, name: str) -> Any:
    details = value.get(group)
    return details.get(name) if isinstance(details, dict) else None


def _count(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1 << 31:
        return None
    return int(value)
