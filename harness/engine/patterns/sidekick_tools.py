"""The lead's two tools, and what a reply says with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from harness.engine.context import passed_on
from harness.engine.patterns.transfer_tools import arguments_of
from harness.engine.request import Message
from harness.engine.state import Node

DELEGATE, REJECT = "delegate", "reject"

TOOLS: tuple[dict[str, Any], ...] = (
    {
        "type": "function",
        "function": {
            "name": DELEGATE,
            "description": "Give a task to the sidekick; its reply is the result. It sees the task and nothing else.",
            "parameters": {
                "type": "object",
                "properties": {
                    "task": {"type": "string", "description": "The task, complete in itself."},
                    "redo": {"type": "boolean", "description": "The last result was of no use; this asks anew."},
                },
                "required": ["task"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": REJECT,
            "description": "Say that the sidekick's last result is of no use and that you do the part yourself.",
            "parameters": {
                "type": "object",
                "properties": {"reason": {"type": "string"}},
                "required": ["reason"],
            },
        },
    },
)


class Delegation(NamedTuple):
    task: str
    redo: bool


def delegated(lead: Node) -> list[Delegation]:
    """The tasks that a reply gives away, in their order; one without a task is none."""
    found = []
    for call in lead.tool_calls if lead.own_tools else ():
        if call["function"]["name"] == DELEGATE:
            given = arguments_of(call)
            if task := str(given.get("task") or "").strip():
                found.append(Delegation(task, given.get("redo") is True))
    return found


def asks(lead: Node) -> bool:
    """Whether a reply goes to the pattern, and is no answer."""
    names = {tool["function"]["name"] for tool in lead.own_tools}
    return any(call["function"]["name"] in names for call in lead.tool_calls)


def rejected(lead: Node) -> bool:
    """Whether a reply says that the results before it were of no use."""
    calls = lead.tool_calls if lead.own_tools else ()
    return any(call["function"]["name"] == REJECT for call in calls) or any(one.redo for one in delegated(lead))


def results(lead: Node, sides: Sequence[Node]) -> list[Message]:
    """What the lead is told: a result for every call of its reply, the delegations' from `sides` in their order."""
    replies = [_reply(side) for side in sides]
    told: list[Message] = []
    for call in lead.tool_calls:
        name = call["function"]["name"]
        if name == DELEGATE and str(arguments_of(call).get("task") or "").strip():
            content = replies.pop(0) if replies else "no more may be delegated now: do this part yourself"
        elif name == REJECT:
            content = "noted: do this part yourself, or delegate it anew"
        else:
            content = "not carried out: call it again, alone and with all that it needs"
        told.append({"role": "tool", "tool_call_id": call.get("id"), "content": content})
    return told


def _reply(side: Node) -> str:
    if side.status == "done":
        return passed_on(side.said) or "(nothing)"
    return f"the sidekick could not be reached ({side.fault}): do this part yourself"
