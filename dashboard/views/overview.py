"""The overview: how much traffic, who answered it, how well, how dear and how fast, and what is wrong now."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import UTC, datetime, timedelta

import streamlit as st

from dashboard import acting, charts, data
from dashboard.parts import kpis, now, saved, workers
from dashboard.ranges import DEFAULT, RANGES, bucket_for
from dashboard.shared import shared
from dashboard.words import moment
from pointsman.queries import Overview, overview, traffic_span


def page() -> None:
    st.title("Overview")
    source = data.source()
    acting.said()
    ranges, compare = st.columns([3, 1], vertical_alignment="bottom")
    name = ranges.segmented_control("Time range", list(RANGES), default=DEFAULT, key="range") or DEFAULT
    length = RANGES[name]
    wanted = compare.toggle(
        "Compare", key="compare", disabled=length is None, help="With the equally long time before."
    )
    shown = read(source, name)
    if not shown.totals.decisions:
        now.section(source)
        _explain_quiet(source)
        return
    before = read(source, name, before=True) if wanted and length is not None else None
    draw(source, shown, before)


def read(source: data.Source, name: str, *, before: bool = False) -> Overview:
    """The overview of a range, or of the equally long time before it; for some seconds the same for all who ask."""
    key: Hashable = ("overview", source.database, source.project, name, before)
    return shared().get(key, lambda: _read(source, RANGES[name], before))


def _read(source: data.Source, length: timedelta | None, before: bool) -> Overview:
    moment_now = datetime.now(UTC)
    if length is not None:
        until = moment_now - length if before else None
        since = moment_now - 2 * length if before else moment_now - length
        return overview(source.engine, source.project, since, until, bucket_for(length))
    span = traffic_span(source.engine, source.project)
    return overview(
        source.engine, source.project, None, None, bucket_for(moment_now - (span[0] if span else moment_now))
    )


def draw(source: data.Source, shown: Overview, before: Overview | None) -> None:
    """Everything below the choice of the range."""
    names = source.workers
    kpis.row(shown.totals, before.totals if before else None)
    if shown.rolled_until is not None:
        st.caption(
            f"Whole hours until {moment(shown.rolled_until)} come from hourly sums: counts and money exact, "
            "percentiles within 3.5 %; words given since show with the next sums."
        )
    now.section(source)
    saved.section(source, shown)
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
    _shares(shown)
    if shown.feedback:
        st.subheader("Feedback")
        workers.feedback_table(shown.feedback)


def _shares(shown: Overview) -> None:
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("Outcomes")
        charts.show(charts.outcomes(shown), "Number of decisions by outcome")
        st.subheader("Patterns")
        charts.show(charts.patterns(shown), "Number of decisions by pattern")
    with right:
        st.subheader("Who decided")
        charts.show(charts.deciders(shown), "Number of decisions by router kind, and forced ones by reason")
        st.caption("Forced decisions had no draw: they are never used by estimates or gates.")
        if shown.versions:
            st.subheader("Router versions")
            charts.show(charts.versions(shown), "Number of decisions by router version")
            st.caption("By the beginning of a version's id; the page Routers has them whole.")


def _explain_quiet(source: data.Source) -> None:
    st.info("No traffic in this time range.")
    span = traffic_span(source.engine, source.project)
    if span is not None:
        st.caption(f"The last decision was made at {span[1]:%Y-%m-%d %H:%M} UTC: choose a longer range.")
