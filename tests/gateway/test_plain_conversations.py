"""A request of texts alone is read the short way, and to the same end as any other."""

from __future__ import annotations

import random
from typing import Any

from harness.gateway.ask import MAX_CONTEXT, read_conversation

TEXTS = ("hello", "", "two\nlines", "x" * 9_000, "<b>", "<system-reminder>noise</system-reminder>", "\x1e")
ROLES = ("user", "user", "assistant", "system", "developer", "tool", "function")


def as_parts(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same, every text as one part: which is never read the short way."""
    return [{**message, "content": [{"type": "text", "text": message["content"]}]} for message in messages]


def test_texts_and_parts_of_text_are_read_alike() -> None:
    rng = random.Random(5)
    for _ in range(2_000):
        messages = [
            {"role": rng.choice(ROLES), "content": rng.choice(TEXTS)} for _ in range(rng.choice((1, 2, 3, 6, 12)))
        ]
        if rng.random() < 0.2:
            messages[0]["tool_calls"] = [{"function": {"name": "look"}}]
        assert read_conversation(messages) == read_conversation(as_parts(messages)), messages


def test_the_usual_request() -> None:
    read = read_conversation([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}])
    assert (read.ask, read.context, read.opening) == ("Why?", "system: Be brief.", "Be brief.\x1eWhy?")
    assert not (read.has_history or read.in_tool_loop or read.images or read.tool_call_ids)
    long = [{"role": "assistant", "content": "y" * 3_000}] * 20
    read = read_conversation([*long, {"role": "user", "content": "Why?"}])
    assert len(read.context) == MAX_CONTEXT and read.has_history
