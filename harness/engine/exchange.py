"""A step's tool calls on their way out to the client and back: ids of our own, and the messages that answer them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from harness.engine.request import Message
from harness.engine.state import Node
from pointsman.ids import new_id

NO_RESULT = "(the client gave no result for this call)"


def with_own_ids(calls: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, str | None]]:
    """The calls under ids that no other step's can equal, and by each the id that the worker gave.

    Some workers count (`call_0` in every reply); two steps that ask at a time must be told apart, and the id is
    what finds the run again.
    """
    issued: dict[str, str | None] = {}
    renamed = []
    for call in calls:
        identity = f"call_{UUID(new_id()).hex}"
        issued[identity] = call.get("id")
        renamed.append({**call, "id": identity})
    return renamed, issued


def assistant_message(node: Node) -> Message:
    """What the worker said when it asked for its tools, under its own ids."""
    calls = [{**call, "id": node.issued.get(call["id"]) or call["id"]} for call in node.tool_calls]
    return {"role": "assistant", "content": node.text, "tool_calls": calls}


def result_messages(node: Node, results: Mapping[str, str]) -> list[Message]:
    """A result for every call, in the calls' order."""
    return [
        {
            "role": "tool",
            "tool_call_id": node.issued.get(call["id"]) or call["id"],
            "content": results.get(call["id"], NO_RESULT),
        }
        for call in node.tool_calls
    ]


def results_in(messages: list[Message], ids: set[str]) -> tuple[dict[str, str], list[Message]]:
    """From a client's messages: the results of these tool calls by id, and what it said behind the last of them."""
    results: dict[str, str] = {}
    last = len(messages)
    for position, message in enumerate(messages):
        identity = message.get("tool_call_id")
        if message.get("role") == "tool" and isinstance(identity, str) and identity in ids:
            results[identity] = _text(message.get("content"))
            last = position + 1
    return results, [message for message in messages[last:] if message.get("role") != "tool"]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        return "\n".join(text for text in texts if isinstance(text, str))
    return ""
