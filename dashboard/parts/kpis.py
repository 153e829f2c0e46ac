"""The row of key figures: each with its unit, and below it the number it rests on."""

from __future__ import annotations

import streamlit as st

from dashboard.words import dollars, milliseconds, percent
from pointsman.queries import Proportion, Totals

CARD_WIDTH = 170  # two beside each other on a telephone
COST = "Workers' calls; routing is apart. Decisions whose cost is not known are left out."
OVERHEAD = "From the request's arrival to its decision, the router's time included."


def row(totals: Totals, before: Totals | None = None) -> None:
    """`before`: the same figures of the time before, told below each."""
    then = figures(before) if before is not None else {}
    with st.container(horizontal=True, gap="small", key="kpis"):
        for label, (value, below, explanation) in figures(totals).items():
            _card(label, value, f"before: {then[label][0]} ({then[label][1]})" if then else below, explanation)


def figures(totals: Totals) -> dict[str, tuple[str, str, str | None]]:
    """By label: the figure, what it rests on, and what it means."""
    explored = Proportion(totals.explored, totals.decisions)
    forced = Proportion(sum(totals.forced.values()), totals.decisions)
    latency, overhead = totals.latency, totals.overhead
    return {
        "Decisions": (f"{totals.decisions:,}", f"{totals.episodes:,} episodes", None),
        "Success": (percent(totals.success), _n(totals.success.n), "Outcome ok, of decisions that ended."),
        "Judged correct": (percent(totals.correct), _judged(totals.correct), "Feedback `correct`: yes."),
        "Cost, USD": (dollars(totals.cost), _costed(totals), COST),
        "Latency, p50": (milliseconds(latency.p50), _n(latency.n), None),
        "Latency, p95": (milliseconds(latency.p95), _n(latency.n), None),
        "Latency, p99": (milliseconds(latency.p99), _n(latency.n), None),
        "Overhead, p50": (milliseconds(overhead.p50), _n(overhead.n), OVERHEAD),
        "Overhead, p95": (milliseconds(overhead.p95), _n(overhead.n), OVERHEAD),
        "Explored": (percent(explored), f"{explored.count:,} of {explored.n:,}", None),
        "Forced": (percent(forced), f"{forced.count:,} of {forced.n:,}", "Chosen without a draw."),
    }


def cost_note(totals: Totals) -> None:
    """What the sum of costs leaves out."""
    parts = [f"Routing cost {dollars(totals.router_cost)} more.".replace("$", "\\$")]
    if totals.unknown_cost:
        parts.append(f"{totals.unknown_cost:,} decisions have an unknown cost and are not in the sum.")
    st.caption(" ".join(parts))


def _card(label: str, value: str, below: str, explanation: str | None = None) -> None:
    st.metric(
        label,
        value,
        below,
        delta_color="off",
        delta_arrow="off",
        help=explanation,
        border=True,
        width=CARD_WIDTH,
    )


def _n(number: int) -> str:
    return f"n = {number:,}"


def _judged(correct: Proportion) -> str:
    return f"n = {correct.n:,}" if correct.n else "no feedback yet"


def _costed(totals: Totals) -> str:
    ended = totals.success.n
    known = ended - totals.unknown_cost
    return f"n = {known:,} of {ended:,}" if totals.unknown_cost else _n(known)
