"""One decision's record as a tree that can be read from top to bottom."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rich.text import Text

from pointsman.commands.decision_list import value_words
from pointsman.commands.output import cell, milliseconds, shortened, table, usd, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.tree import Tree

Record = dict[str, Any]

LONGEST_TEXT = 600
BESIDE_CARD = 56
"""Columns that the table of workers takes beside the cards."""


def show_record(console: Console, record: Record) -> None:
    """Prints the record of `pointsman.queries.decision_record`."""
    console.print(record_tree(record, max(24, console.width - BESIDE_CARD)))


def record_tree(record: Record, card_length: int) -> Tree:
    """The tree: decision, request, workers, router, calls, outcome, feedback, decisions below."""
    from rich.tree import Tree

    decision = record["decision"]
    tree = Tree(_head(decision), guide_style="dim")
    _line(tree, "when", f"{datetime.fromisoformat(decision['decided_at']).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC")
    _line(tree, "pattern", f"{decision['pattern']}, {decision['kind']}, {decision['origin']}")
    _line(tree, "episode", decision["episode_id"])
    _request(tree, record["request"])
    _branch(tree, "workers").add(_workers(record, card_length))
    _router(tree, record)
    _calls(tree, record["calls"])
    _outcome(tree, record["outcome"], record["outcomes"])
    _feedback(tree, record["feedback"])
    _children(tree, record["children"])
    return tree


def _head(decision: Record) -> Text:
    head = Text(f"decision {decision['id']}", style="bold")
    if decision["chosen"] is not None:
        head.append(f"\n{decision['chosen']}", style="bold green")
        probability = decision["propensity"]
        head.append("" if probability is None else f" with probability {probability:.4f}")
    if decision["explored"]:
        head.append(", explored", style="yellow")
    if decision["forced"]:
        head.append(f", no choice: {decision['forced']}", style="yellow")
    return head


def _request(tree: Tree, request: Record | None) -> None:
    if request is None:
        _line(tree, "request", "not stored")
        return
    branch = _branch(tree, "request")
    _line(branch, "model", request.get("model"))
    branch.add(Text(_bounded(request["text"]) if request["text"] is not None else "(text not stored)"))


def _workers(record: Record, card_length: int) -> Any:
    decision = record["decision"]
    scores, probabilities = decision["scores"] or {}, decision["probabilities"] or {}
    shown = table("worker", "score", "probability", "card, or why not", right=("score", "probability"))
    eligible = decision["eligible"] or {}
    for worker in sorted(eligible, key=lambda name: (eligible[name] is not None, -probabilities.get(name, 0.0), name)):
        score, probability = scores.get(worker), probabilities.get(worker)
        style = "bold green" if worker == decision["chosen"] else "dim" if eligible[worker] else ""
        shown.add_row(
            cell(worker, style),
            cell(None if score is None else f"{score:.3f}", style),
            cell(None if probability is None else f"{probability:.4f}", style),
            cell(eligible[worker] or shortened(record["cards"].get(worker), card_length), style),
        )
    return shown


def _router(tree: Tree, record: Record) -> None:
    decision, version = record["decision"], record["router_version"]
    branch = _branch(tree, "router")
    _line(branch, "kind", decision["router_kind"])
    _line(branch, "version", version["id"] if version else decision["router_version_id"])
    _line(branch, "reply", decision["raw_reply"] and repr(decision["raw_reply"]))
    _line(branch, "parsed", decision["parse_status"])
    _line(branch, "took", milliseconds(decision["router_ms"]))
    _line(branch, "cost", usd(decision["router_cost"]))


def _calls(tree: Tree, calls: list[Record]) -> None:
    for call in calls:
        branch = _branch(tree, f"call {call['attempt']}")
        branch.add(_call_head(call))
        _line(branch, "error", call["error"])
        if call["completion"] is not None:
            branch.add(Text(_bounded(call["completion"])))


def _call_head(call: Record) -> Text:
    good = call["status"] == "ok"
    parts = [
        f"{call['input_tokens']} in, {call['output_tokens']} out" if call["input_tokens"] is not None else None,
        milliseconds(call["latency_ms"]),
        f"first content {milliseconds(call['first_token_ms'])}" if call["first_token_ms"] is not None else None,
        usd(call["cost"]) or "cost unknown",
    ]
    head = Text(f"{call['worker']} ", style="bold")
    status = f"{call['status']} (HTTP {call['http_status']})" if call["http_status"] else str(call["status"])
    head.append(status, style="green" if good else "red")
    head.append(", " + ", ".join(part for part in parts if part))
    return head


def _outcome(tree: Tree, outcome: Record | None, per_call: list[Record]) -> None:
    if outcome is not None:
        words = Text(f"outcome {outcome['status']}", style="green" if outcome["status"] == "ok" else "red")
        took = milliseconds(outcome["latency_ms"])
        words.append(f", answered by {outcome['worker']}" if outcome["worker"] else "", style="default")
        words.append(f" in {took}" if took else "", style="default")
        words.append(f", {usd(outcome['cost']) or 'cost unknown'}", style="default")
        tree.add(words)
    elif not per_call:
        tree.add(Text("outcome: none yet", style="yellow"))
    if per_call:
        shown = table("worker", "score", "cost", right=("score", "cost"))
        for row in per_call:
            score = None if row["score"] is None else f"{Decimal(str(row['score'])):.3f}"
            shown.add_row(cell(row["worker"]), cell(score), cell(usd(row["cost"])))
        _branch(tree, "outcomes").add(shown)


def _feedback(tree: Tree, words: list[Record]) -> None:
    if not words:
        return
    branch = _branch(tree, "feedback")
    replaced = {word["amends"] for word in words if word["amends"]}
    for word in words:
        line = Text(f"{word['metric']} {value_words(word['value'])} from {word['source']}".replace("  ", " "))
        line.append(f": {visible(word['comment'])}" if word["comment"] else "")
        line.append(f", better: {word['better_worker']}" if word["better_worker"] else "")
        if word["id"] in replaced or word["retracted"]:
            line.stylize("dim strike")
        branch.add(line)


def _children(tree: Tree, children: list[Record]) -> None:
    for child in children:
        decision = child["decision"]
        branch = _branch(tree, f"{decision['kind']} {decision['chosen'] or 'none'} ({decision['id']})")
        _children(branch, child["children"])


def _branch(tree: Tree, title: str) -> Tree:
    return tree.add(Text(title, style="bold cyan"))


def _line(tree: Tree, name: str, value: object) -> None:
    if value is None or value == "":
        return
    line = Text(f"{name} ", style="cyan")
    line.append(visible(str(value)), style="default")
    tree.add(line)


def _bounded(text: str) -> str:
    shown = visible(text)
    rest = len(shown) - LONGEST_TEXT
    return shown if rest <= 0 else f"{shown[:LONGEST_TEXT]}… ({rest} more characters; --json shows all)"
