"""The row of key figures: each with its unit, and below it the number it rests on."""

from __future__ import annotations

import streamlit as st

from dashboard.words import dollars, milliseconds, percent
from pointsman.queries import Percentiles, Proportion, Totals

CARD_WIDTH = 170  # two beside each other on a telephone
COST = "Workers' calls; routing is apart. Decisions whose cost is not known are left out."
OVERHEAD = "From the request's arrival to its decision, the router's time included."


def row(totals: Totals) -> None:
    with st.container(horizontal=True, gap="small", key="kpis"):
        _card("Decisions", f"{totals.decisions:,}", f"{totals.episodes:,} episodes")
        _card("Success", percent(totals.success), _n(totals.success.n), "Outcome ok, of decisions that ended.")
        _card("Judged correct", percent(totals.correct), _judged(totals.correct), "Feedback `correct`: yes.")
        _card("Cost, USD", dollars(totals.cost), _costed(totals), COST)
        _latency(totals.latency)
        for name, value in (("p50", totals.overhead.p50), ("p95", totals.overhead.p95)):
            _card(f"Overhead, {name}", milliseconds(value), _n(totals.overhead.n), OVERHEAD)
        explored = Proportion(totals.explored, totals.decisions)
        _card("Explored", percent(explored), f"{explored.count:,} of {explored.n:,}")
        forced = Proportion(sum(totals.forced.values()), totals.decisions)
        _card("Forced", percent(forced), f"{forced.count:,} of {forced.n:,}", "Chosen without a draw.")


def cost_note(totals: Totals) -> None:
    """What the sum of costs leaves out."""
    parts = [f"Routing cost {dollars(totals.router_cost)} more.".replace("$", "\\$")]
    if totals.unknown_cost:
        parts.append(f"{totals.unknown_cost:,} decisions have an unknown cost and are not in the sum.")
    st.caption(" ".join(parts))


def _latency(latency: Percentiles) -> None:
    for name, value in (("p50", latency.p50), ("p95", latency.p95), ("p99", latency.p99)):
        _card(f"Latency, {name}", milliseconds(value), _n(latency.n))


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
