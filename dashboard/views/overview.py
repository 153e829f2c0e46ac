"""The overview: how much traffic, who answered it, how well, how dear and how fast."""

from __future__ import annotations

from datetime import UTC, datetime

import streamlit as st

from dashboard import charts, data
from dashboard.parts import kpis, workers
from dashboard.ranges import DEFAULT, RANGES, bucket_for
from pointsman.queries import Overview, overview, traffic_span


def page() -> None:
    st.title("Overview")
    source = data.source()
    name = st.segmented_control("Time range", list(RANGES), default=DEFAULT, key="range") or DEFAULT
    now = datetime.now(UTC)
    length = RANGES[name]
    since = now - length if length else None
    span = traffic_span(source.engine, source.project)
    first = max(span[0], since) if span and since else span[0] if span else now
    shown = overview(source.engine, source.project, since, None, bucket_for(now - first))
    if not shown.totals.decisions:
        _explain_quiet(span[1] if span else None)
        return
    draw(shown, source.workers)


def draw(shown: Overview, names: tuple[str, ...]) -> None:
    """Everything below the choice of the range."""
    kpis.row(shown.totals)
    st.subheader("Traffic by worker")
    charts.show(charts.traffic(shown, names), "Decisions over time, stacked by the worker chosen")
    st.subheader("Workers")
    workers.section(shown, names)
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("Cost")
        charts.show(charts.cost(shown, names), "Cost in USD over time, stacked by the worker chosen")
        kpis.cost_note(shown.totals)
    with right:
        st.subheader("Latency")
        charts.show(charts.latency(shown, names), "Median, 95th and 99th percentile latency by worker")
        st.caption("From the request's arrival to the end of the answer, by the worker chosen.")
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("Outcomes")
        charts.show(charts.outcomes(shown), "Number of decisions by outcome")
    with right:
        st.subheader("Who decided")
        charts.show(charts.deciders(shown), "Number of decisions by router kind, and forced ones by reason")
        st.caption("Forced decisions had no draw: they are never used by estimates or gates.")
    if shown.feedback:
        st.subheader("Feedback")
        workers.feedback_table(shown.feedback)


def _explain_quiet(last: datetime | None) -> None:
    st.info("No traffic in this time range.")
    if last is not None:
        st.caption(f"The last decision was made at {last:%Y-%m-%d %H:%M} UTC: choose a longer range.")
