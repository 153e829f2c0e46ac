"""Workers as tools to hand over to: `transfer_to_<worker>`, described by the worker's card.

The form is that of the OpenAI Agents SDK's handoffs (default name and description of a handoff, `is_enabled` as the
mask); the wording is our own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from harness.engine.state import Node
from pointsman.pool import Worker

PREFIX = "transfer_to_"
NAME_CHARS = 64
"""The longest name that a tool may have (OpenAI's API)."""
CARD_CHARS = 900
"""The most of a card that its tool shows: some providers allow 1,024 characters for a description."""
_REASON = {"type": "string", "description": "Why this worker should go on, and what it should know."}


def transfer_tools(workers: Sequence[Worker]) -> dict[str, tuple[str, dict[str, Any]]]:
    """By tool name: the worker, and the tool. Names that would be equal are told apart by a number."""
    made: dict[str, tuple[str, dict[str, Any]]] = {}
    for worker in workers:
        plain = base = (PREFIX + re.sub(r"[^A-Za-z0-9_-]", "_", worker.name))[:NAME_CHARS]
        number = 1
        while plain in made:
            number += 1
            plain = f"{base[: NAME_CHARS - 4]}_{number}"
        function = {
            "name": plain,
            "description": f"Hand the conversation over to {worker.name}, who goes on in your place: "
            f"{worker.card[:CARD_CHARS]}",
            "parameters": {"type": "object", "properties": {"reason": _REASON}, "required": ["reason"]},
        }
        made[plain] = (worker.name, {"type": "function", "function": function})
    return made


def transfer_of(node: Node) -> tuple[str, str] | None:
    """(worker, reason) of the first transfer that a reply asks for; None: it asks for none that it was offered."""
    for call in node.tool_calls:
        if (worker := node.options.get(call["function"]["name"])) is not None:
            return worker, str(arguments_of(call).get("reason") or "").strip()
    return None


def arguments_of(call: Mapping[str, Any]) -> dict[str, Any]:
    """A tool call's arguments; empty where they are no JSON object."""
    try:
        read = json.loads(call["function"]["arguments"] or "{}")
    except (ValueError, TypeError):
        return {}
    return read if isinstance(read, dict) else {}
