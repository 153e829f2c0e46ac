"""Reading an OpenAI chat completion that may be anything: its text, its usage, what that cost."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from harness.routing.base import RouterUsage
from pointsman.pool import Price

_MILLION = Decimal(1_000_000)


def content_of(reply: Any) -> str | None:
    """The text of the first choice; None where there is none (null content, tool calls, no choices)."""
    content = _get(_get(first_choice(reply), "message"), "content")
    if isinstance(content, list):
        texts = [_get(part, "text") for part in content]
        content = "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else None


def first_choice(reply: Any) -> Any:
    """The first choice, None where there is none."""
    choices = _get(reply, "choices")
    return choices[0] if isinstance(choices, list) and choices else None


def usage_of(reply: Any, price: Price | None) -> RouterUsage:
    """Tokens and cost in USD; the cost is None where price or usage is unknown."""
    usage = _get(reply, "usage")
    tokens_in, tokens_out = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    if price is None or tokens_in is None or tokens_out is None:
        return RouterUsage(tokens_in, tokens_out)
    cached = min(_count(_get(usage, "prompt_tokens_details"), "cached_tokens") or 0, tokens_in)
    cost = (tokens_in - cached) * price.input + cached * price.cached_input + tokens_out * price.output
    return RouterUsage(tokens_in, tokens_out, cost / _MILLION)


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _count(value: Any, key: str) -> int | None:
    number = _get(value, key)
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        return None
    return number
