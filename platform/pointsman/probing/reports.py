"""What a run of probes or audits did, as figures for programs and lines for people."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from pointsman.probing.asking import Asked
from pointsman.probing.audit import Audited
from pointsman.probing.judging import JudgedRows


def asked_figures(asked: Asked) -> dict[str, Any]:
    """The figures of a run, as JSON has them."""
    return {
        "rows": asked.subjects,
        "answers": asked.cells,
        "known_before": asked.known,
        "answered": asked.answered,
        "failed": asked.failed,
        "missing": asked.left,
        "faults": dict(asked.faults),
        "given_up": asked.given_up,
        "cost_usd": None if asked.cost is None else format(asked.cost, "f"),
        "stopped": asked.stopped,
    }


def asked_lines(asked: Asked) -> list[str]:
    """The same for people, the most important first."""
    before = f", {asked.known:,} were there before" if asked.known else ""
    lines = [f"{asked.answered:,} of {asked.cells:,} answers were asked for and came{before}; {_money(asked.cost)}"]
    if asked.failed:
        faults = ", ".join(f"{fault} {count}" for fault, count in asked.faults.most_common())
        lines.append(f"{asked.failed:,} calls for an answer failed: {faults}")
    if asked.given_up:
        lines.append(f"given up after failures in a row: {', '.join(asked.given_up)}")
    if asked.stopped:
        lines.append(f"stopped: {asked.stopped}")
    if asked.left:
        lines.append(f"{asked.left:,} answers are missing; the same command goes on with them")
    return lines


def audit_figures(audited: Audited) -> dict[str, Any]:
    drawn = audited.drawn
    figures = {"population": drawn.population, "looked_at": drawn.looked_at, "refused": dict(drawn.refused)}
    judged = None if audited.judged is None else judged_figures(audited.judged)
    return {**figures, **asked_figures(audited.asked), "judged": judged}


def judged_figures(judged: JudgedRows) -> dict[str, Any]:
    return {
        "rows": judged.rows,
        "scored": judged.scored,
        "unread": judged.unread,
        "left_out": dict(judged.left_out),
        "cost_usd": None if judged.cost is None else format(judged.cost, "f"),
        "stopped": judged.stopped,
    }


def audit_lines(audited: Audited) -> list[str]:
    drawn = audited.drawn
    refused = ", ".join(f"{reason} {count}" for reason, count in drawn.refused.most_common())
    lines = [f"{len(drawn.subjects):,} requests, of {drawn.population:,} that may be asked again"]
    if refused:
        lines.append(f"{drawn.refused.total():,} that were drawn cannot be asked again: {refused}")
    lines += asked_lines(audited.asked)
    if (judged := audited.judged) is not None:
        lines.append(f"the judge scored {judged.scored:,} answers of {judged.rows:,} rows; {_money(judged.cost)}")
        if judged.unread:
            lines.append(f"{judged.unread:,} of its replies could not be read: those answers have no score")
        if left_out := judged.left_out.total():
            lines.append(f"{left_out:,} answers it may not see: it was not among those who may answer the request")
        if judged.stopped:
            lines.append(f"the judge stopped: {judged.stopped}")
    return lines


def _money(cost: Decimal | None) -> str:
    return "the cost is not known: a price is missing" if cost is None else f"${cost:.4f}"
