"""What a worker is sent: the client's own messages, and behind its last words what the team adds, under headings.

What is added stands in the last user message, so that no provider meets two messages of one role in a row. The
client's messages are never changed otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.engine.memory import Item
from harness.engine.request import Message
from harness.routing.slots import bounded

RESULT_CHARS = 24_000
"""The longest reply of another worker that is passed on; its middle is left out beyond that."""

Block = tuple[str, str]
"""A heading and what stands under it."""


def with_blocks(messages: Sequence[Message], blocks: Sequence[Block]) -> list[Message]:
    """The client's messages, with `blocks` behind the last one's text."""
    if not blocks:
        return list(messages)
    added = "\n\n".join(f"### {heading}\n{text}" for heading, text in blocks)
    last = messages[-1] if messages else None
    if last is None or last.get("role") != "user":
        return [*messages, {"role": "user", "content": added}]
    return [*messages[:-1], {**last, "content": _appended(last.get("content"), added)}]


def passed_on(text: str) -> str:
    """Another worker's reply as it is passed on."""
    return bounded(text.strip(), RESULT_CHARS)


def remembered(items: Sequence[Item]) -> list[Block]:
    """Tool calls of the episode's earlier workflows and what came back, so that nobody need make them again."""
    lines = [
        f"{item.content['name']}({item.content['arguments']}) gave:\n{item.content['result']}"
        for item in items
        if item.kind == "tool"
    ]
    return [("What tools gave before", "\n\n".join(lines))] if lines else []


def _appended(content: Any, added: str) -> Any:
    if isinstance(content, list):
        return [*content, {"type": "text", "text": added}]
    return f"{content}\n\n{added}" if content else added
