"""How gates and router versions are shown: tables for people, one JSON value for programs."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING, Any

from pointsman.commands.output import out, say

if TYPE_CHECKING:
    from pointsman.promotion.versions import StoredVersion

COLOURS = {
    "promoted": "green", "ready": "green", "running": "cyan", "rolled_back": "red", "stopped": "yellow",
    "expired": "yellow",
}  # fmt: skip


def show_gates(rows: Sequence[Any]) -> None:
    if not rows:
        say(out(), "no gates; `pointsman gate start VERSION` registers one")
        return
    for row in rows:
        say(out(), f"{row.id}  {row.state}", COLOURS.get(row.state, ""))
        done = f"{row.rows} rows, {_share(row):.0%} of the evidence to pass"
        say(out(), f"    candidate {row.candidate_id}: {done}{f'; {row.reason}' if row.reason else ''}", "dim")


def show_gate(row: Any, steps: Sequence[Any]) -> None:
    terms, console = row.terms, out()
    say(console, f"gate {row.id}: {row.state}", COLOURS.get(row.state, ""))
    if row.reason:
        say(console, f"  {row.reason}")
    say(console, f"  candidate {row.candidate_id} against {row.incumbent_id}, mode {row.mode}")
    claim = "better" if not terms["epsilon"] else f"not worse by more than {terms['epsilon']:g}"
    say(
        console,
        f"  to show: {claim}, with error {terms['alpha']:.4g}; rolled back with error {terms['alpha_rollback']:g}",
    )
    say(console, f"  {_ramp(row)}; a row closes {row.deadline_seconds:g} s after its end")
    say(console, f"  guardrails: {_guards(row)}")
    say(console, f"  registered {row.registered_at:%Y-%m-%d %H:%M} by {row.registered_by}, before its first row")
    if not steps:
        say(console, "  no row yet: the routers have not disagreed, or nothing has closed")
        return
    last, arms = steps[-1], [step.arm for step in steps]
    known = sum(step.known for step in steps)
    say(console, f"  {len(steps)} rows, {arms.count('candidate')} of them the candidate's; {known} with a reward")
    say(console, f"  mean reward: candidate {_mean(steps, 'candidate')}, incumbent {_mean(steps, 'incumbent')}")
    say(console, f"  ln E = {last.log_e:.2f} of {-log(terms['alpha']):.2f} to pass")
    say(console, f"  ln R = {last.log_r:.2f} of {-log(terms['alpha_rollback']):.2f} to be rolled back")


def gate_json(row: Any, steps: Sequence[Any] = ()) -> dict[str, Any]:
    """The row, and where given its steps."""
    names = (
        "id", "state", "reason", "candidate_id", "incumbent_id", "mode", "terms", "ramp", "guards", "unit",
        "deadline_seconds", "timeout_value", "spec_hash", "pool_epoch", "rows", "registered_by", "registered_at",
        "ended_at", "expires_at",
    )  # fmt: skip
    shown: dict[str, Any] = {name: getattr(row, name) for name in names}
    shown["log_e_needed"] = -log(row.terms["alpha"])
    if steps:
        shown["steps"] = [
            {"seq": s.seq, "decision_id": s.decision_id, "arm": s.arm, "rho": s.rho, "utility": s.utility,
             "known": s.known, "log_e": s.log_e, "log_r": s.log_r}
            for s in steps
        ]  # fmt: skip
    return shown


def list_json(rows: Sequence[Any]) -> list[dict[str, Any]]:
    return [{**gate_json(row), "evidence_share": _share(row)} for row in rows]


def show_versions(found: Sequence[StoredVersion], serving: str | None, proven: set[str]) -> None:
    if not found:
        say(out(), "no router versions yet: they are made by the gateway and by `pointsman optimize`")
        return
    for one in found:
        state = _now(one, serving)
        certified = ", certified as better" if one.id in proven else ""
        say(out(), f"{one.id}  {one.kind:8} {state}{certified}", "green" if one.id == serving else "")


def version_json(one: StoredVersion, serving: str | None, proven: set[str]) -> dict[str, Any]:
    return {
        "id": one.id, "kind": one.kind, "state": one.state, "parent_id": one.parent_id, "config": one.config,
        "serves": one.id == serving, "certified": one.id in proven,
    }  # fmt: skip


def _now(one: StoredVersion, serving: str | None) -> str:
    """The file's versions keep the state `serving` when another takes their place."""
    if one.id == serving:
        return "serves now"
    return "served by the file" if one.state == "serving" and serving is not None else one.state


def _share(row: Any) -> float:
    if row.evidence is None:
        return 0.0
    gathered: float = row.evidence["evidence"]["log_e"] / -log(row.terms["alpha"])
    return min(max(gathered, 0.0), 1.0)


def _ramp(row: Any) -> str:
    steps = ", ".join(f"{share:.0%} after {int(rows)}" for rows, share in row.ramp["steps"])
    return f"the candidate's share of the disagreements: {steps} rows"


def _guards(row: Any) -> str:
    guards = row.guards
    told = [f"errors {guards['errors']:.0%}"]
    if guards["latency_seconds"] is not None:
        told.append(f"slowest twentieth {guards['latency_seconds']:.1f} s")
    if guards["cost"] is not None:
        told.append(f"mean cost ${guards['cost']:.4g}")
    return ", ".join(told)


def _mean(steps: Sequence[Any], arm: str) -> str:
    values = [step.utility for step in steps if step.arm == arm]
    return f"{sum(values) / len(values):.3f}" if values else "unknown"
