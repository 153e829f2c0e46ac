"""A decision drawn as a tree: request, choice, calls with their answers, end, and the decisions below it.

The drawing is DOT, whose quoted labels hold ids, names and figures of ours: texts of people and models stay out of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dashboard.words import NOTHING, dollars, milliseconds, number

Record = dict[str, Any]
MOST = 60  # nodes that a picture can hold
LONGEST = 40
HEAD = (
    'digraph { rankdir=TB; bgcolor="transparent"; nodesep=0.25; ranksep=0.35; '
    'node [shape=box, style="rounded,filled", color="#8A8A8A", fontname="sans-serif", fontsize=11, '
    'fontcolor="#10202C", margin="0.12,0.07"]; edge [color="#8A8A8A", arrowsize=0.6, fontname="sans-serif", '
    'fontsize=10, fontcolor="#8A8A8A"];'
)
REQUEST, DECISION, CALL, FAILED, ENDED = "#E8EAED", "#CFE3F2", "#FFFFFF", "#F6D5C2", "#CDE9DE"


def dot(record: Record) -> str:
    """The picture of `decision_record`'s record; at most `MOST` nodes, the last one saying that there are more."""
    lines = list(_lines(record))
    if len(lines) > 2 * MOST:
        lines = [*lines[: 2 * MOST], node("more", ["more than can be drawn"], REQUEST)]
    return "\n".join([HEAD, *lines, "}"])


def _lines(record: Record) -> Iterator[str]:
    request, decision = record["request"] or {}, record["decision"]
    asked = "request" if not request else f"request, {request.get('model') or 'no model'}"
    yield node("request", [asked], REQUEST)
    yield from _decision(decision, record["calls"], record["outcome"], "request")
    yield from _below(record["children"], decision["id"])


def _below(children: list[Record], parent: str) -> Iterator[str]:
    for child in children:
        row = child["decision"]
        yield from _decision(row, child.get("calls") or [], child.get("outcome"), parent)
        yield from _below(child["children"], row["id"])


def _decision(decision: Record, calls: list[Record], outcome: Record | None, parent: str) -> Iterator[str]:
    identity = decision["id"]
    role = f", {decision['role']}" if decision.get("role") else ""
    step = f" {decision['step']}" if decision.get("step") is not None else ""
    how = decision["forced"] or f"p = {number(decision['propensity'])}"
    yield node(
        identity,
        [
            f"{decision['kind']}{step}{role}",
            decision["chosen"] or "everybody",
            f"{decision['router_kind'] or '–'}, {how}",
        ],
        DECISION,
    )
    yield edge(parent, identity)
    last = identity
    for call in calls:
        yield node(call["id"], _call(call), CALL if call["status"] == "ok" else FAILED)
        yield edge(last, call["id"])
        last = call["id"]
    if outcome:
        good = outcome["status"] == "ok"
        end = f"end {identity}"
        yield node(end, [outcome["status"], milliseconds(outcome["latency_ms"])], ENDED if good else FAILED)
        yield edge(last, end)


def _call(call: Record) -> list[str]:
    tokens = f"{_count(call['input_tokens'])} in, {_count(call['output_tokens'])} out"
    cost = "cost unknown" if call["cost"] is None else dollars(call["cost"])
    answer = call["status"] if call["status"] == "ok" else f"{call['status']}: {call['fault'] or NOTHING}"
    return [f"call of {call['worker']}", answer, tokens, f"{cost}, {milliseconds(call['latency_ms'])}"]


def node(identity: str, lines: list[str], colour: str) -> str:
    label = "\\n".join(quoted(line) for line in lines)
    return f'"{quoted(identity)}" [label="{label}", fillcolor="{colour}"];'


def edge(start: str, end: str) -> str:
    return f'"{quoted(start)}" -> "{quoted(end)}";'


def quoted(text: str) -> str:
    """`text` for a DOT string: its marks escaped, line ends and control characters as spaces, cut where it is long."""
    clean = "".join(char if char.isprintable() else " " for char in text)
    short = clean if len(clean) <= LONGEST else f"{clean[: LONGEST - 1]}…"
    return short.replace("\\", "\\\\").replace('"', '\\"')


def _count(value: int | None) -> str:
    return NOTHING if value is None else f"{value:,}"
