"""How turns of the flywheel are told: a story for people, one JSON value for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pointsman.commands.output import out, say

if TYPE_CHECKING:
    from pointsman.flywheel.store import LinkRecord, Turn

COLOURS = {
    "promoted": "green", "proposed": "green", "running": "cyan", "refused": "yellow", "stopped": "yellow",
    "failed": "red", "done": "green", "skipped": "dim",
}  # fmt: skip


def show_turns(turns: Sequence[Turn]) -> None:
    if not turns:
        say(out(), "no turn yet; `pointsman flywheel need` says what one waits for")
        return
    for turn in turns:
        at = turn.links[-1].name if turn.links else "its begin"
        say(out(), f"{turn.id}  {turn.state}", COLOURS.get(turn.state, ""))
        told = turn.reason or (f"at {at}" if turn.state == "running" else "")
        say(out(), f"    opened {turn.opened_at:%Y-%m-%d %H:%M}: {turn.opened_because}", "dim")
        if told:
            say(out(), f"    {told}", "dim")


def show_turn(turn: Turn) -> None:
    say(out(), f"turn {turn.id}: {turn.state}", COLOURS.get(turn.state, ""))
    if turn.reason:
        say(out(), f"  {turn.reason}")
    say(out(), f"  opened {turn.opened_at:%Y-%m-%d %H:%M} by {turn.opened_by}: {turn.opened_because}")
    say(out(), f"  mode {turn.mode}; its jobs have cost ${turn.cost:.4f}{_budget(turn)}")
    for link in turn.links:
        _show_link(link)
    if turn.state == "proposed":
        say(out(), f"  next: pointsman promote {turn.candidate_id}")


def turn_json(turn: Turn) -> dict[str, Any]:
    """The row, links included."""
    return {
        "id": turn.id, "state": turn.state, "mode": turn.mode, "opened_by": turn.opened_by,
        "opened_because": turn.opened_because, "information": turn.information,
        "links": [link.to_json() for link in turn.links], "reason": turn.reason, "candidate": turn.candidate_id,
        "gate": turn.gate_id, "budget": turn.budget, "cost": turn.cost, "opened_at": turn.opened_at,
        "ended_at": turn.ended_at,
    }  # fmt: skip


def _show_link(link: LinkRecord) -> None:
    say(out(), f"  {link.name:<10} {link.state}", COLOURS.get(link.state, ""))
    if link.reason:
        say(out(), f"             {link.reason}", "dim")
    if link.numbers:
        say(out(), f"             {_numbers(link.numbers)}", "dim")
    for job in link.jobs:
        say(out(), f"             job {job}", "dim")


def _numbers(numbers: Mapping[str, Any]) -> str:
    parts = []
    for key, value in numbers.items():
        if isinstance(value, Mapping):
            parts.append(f"{key}: {_numbers(value)}")
        else:
            parts.append(f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}")
    return ", ".join(parts)


def _budget(turn: Turn) -> str:
    return "" if turn.budget is None else f" of ${turn.budget:.2f}"
