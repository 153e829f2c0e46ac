"""How a run ends: the answer with its totals, or the failure; and what is kept of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from harness.engine.events import Done, Failed
from harness.engine.limits import Totals
from harness.engine.memory import Item
from harness.engine.state import Node, State
from pointsman.errors import UpstreamError, UpstreamFault
from pointsman.ids import new_id
from pointsman.words import OutcomeStatus, members

RESULT_CHARS = 20_000
"""The longest tool result that is remembered; what is beyond is cut, with a note."""


def answered(state: State, node: Node | None, reason: str, totals: Totals, tree: tuple[Node, ...]) -> Done:
    """The answer of `node`; None: the tool calls of all nodes that wait."""
    if node is None:
        waiting = state.waiting
        calls = [call for each in waiting for call in each.tool_calls]
        _count_visible(totals, waiting)
        first = waiting[0]
        return Done(None, reason, first.id, first.answered_by, totals, calls, "tool_calls", tree)
    _count_visible(totals, [node])
    finish = "tool_calls" if node.tool_calls else str(node.data.get("finish_reason") or "stop")
    return Done(node.text, reason, node.id, node.answered_by, totals, node.tool_calls, finish, tree)


def failed(state: State, reason: str, totals: Totals, tree: tuple[Node, ...], *, told: bool) -> Failed:
    """No answer: the last node's fault says why."""
    nodes = [node for node in state.nodes.values() if node.fault is not None]
    word = nodes[-1].fault if nodes else None
    fault: UpstreamFault = word if word in members(UpstreamFault) else "server"  # type: ignore[assignment]
    message = (nodes[-1].reason if nodes else None) or f"no worker gave an answer ({reason})"
    status: OutcomeStatus = "truncated" if told else "timeout" if fault == "timeout" else "upstream_error"
    if word is not None and word.startswith("limit_"):
        status = "rejected"
    return Failed(UpstreamError("truncated" if told else fault, message), status, reason, totals, tree)


def state_item(state: State) -> Item:
    """The run as it waits, findable by the tool calls that the client was given."""
    request = state.request
    content: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(state))
    return Item(
        id=new_id(),
        project_id=request.project_id,
        episode_id=request.episode_id,
        kind="state",
        content=content,
        created_at=datetime.now(UTC),
        workflow=state.workflow,
        tool_call_ids=tuple(state.tool_call_ids()),
    )


def tool_items(state: State, node: Node, results: Mapping[str, str]) -> list[Item]:
    """A node's tool calls with their results."""
    request, now = state.request, datetime.now(UTC)
    return [
        Item(
            id=new_id(),
            project_id=request.project_id,
            episode_id=request.episode_id,
            kind="tool",
            content={
                "name": call["function"]["name"],
                "arguments": call["function"]["arguments"],
                "result": _cut(results[call["id"]]),
            },
            created_at=now,
            workflow=state.workflow,
            worker=node.answered_by,
        )
        for call in node.tool_calls
        if call["id"] in results
    ]


def _cut(text: str) -> str:
    if len(text) <= RESULT_CHARS:
        return text
    return f"{text[:RESULT_CHARS]}\n[... {len(text) - RESULT_CHARS} characters left out ...]"


def _count_visible(totals: Totals, nodes: list[Node]) -> None:
    totals.visible_input_tokens = sum(node.input_tokens for node in nodes)
    totals.visible_output_tokens = sum(node.output_tokens for node in nodes)
    totals.visible_cached_tokens = sum(node.cached_tokens for node in nodes)
