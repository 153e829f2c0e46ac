"""The form that narrows the list of decisions down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import streamlit as st

from dashboard.ranges import RANGES
from pointsman.queries import DecisionFilter
from pointsman.words import Forced, Origin, OutcomeStatus, RouterKind, members

ANY = "any"
YES_NO = {ANY: None, "yes": True, "no": False}
FORCED: dict[str, Any] = {ANY: None, "not forced": False, "forced": True} | {
    reason: reason for reason in members(Forced)
}

KEYS = (
    "search",
    "filter-range",
    "filter-worker",
    "filter-status",
    "filter-router",
    "filter-explored",
    "filter-forced",
    "filter-feedback",
    "filter-origin",
    "filter-low",
    "filter-high",
    "filter-episode",
)


def keep() -> None:
    """Keeps what was chosen while the form is not drawn: Streamlit forgets widgets that a run leaves out."""
    for key in KEYS:
        if key in st.session_state:
            st.session_state[key] = st.session_state[key]


def form(workers: Sequence[str], on_change: Callable[[], None]) -> DecisionFilter:
    """The filter as it was last applied; `on_change` runs when it is applied anew."""
    with st.expander("Filters", icon=":material/filter_list:"), st.form("filters", border=False):
        search = st.text_input(
            "Search in the ask", placeholder='words, "a phrase", -without, or', key="search", max_chars=500
        ).strip()
        when, worker, status, router = st.columns(4)
        chosen_range = when.selectbox("Time", list(RANGES), index=len(RANGES) - 1, key="filter-range")
        chosen_worker = worker.selectbox("Worker chosen", [ANY, *workers], key="filter-worker")
        chosen_status = status.selectbox("Outcome", [ANY, *members(OutcomeStatus)], key="filter-status")
        chosen_kind = router.selectbox("Router", [ANY, *members(RouterKind)], key="filter-router")
        explored, forced, feedback, origin = st.columns(4)
        is_explored = explored.selectbox("Explored", list(YES_NO), key="filter-explored")
        is_forced = forced.selectbox("Forced", list(FORCED), key="filter-forced")
        has_feedback = feedback.selectbox("Feedback", list(YES_NO), key="filter-feedback")
        chosen_origin = origin.selectbox("Origin", [*members(Origin), ANY], key="filter-origin")
        low, high, episode = st.columns([1, 1, 2])
        low_ms = low.number_input("Latency from, ms", min_value=0, value=None, key="filter-low")
        high_ms = high.number_input("Latency to, ms", min_value=0, value=None, key="filter-high")
        episode_id = episode.text_input("Episode id", key="filter-episode").strip()
        st.form_submit_button("Apply", type="primary", on_click=on_change)
    length = RANGES[chosen_range]
    return DecisionFilter(
        search=search or None,
        worker=_given(chosen_worker),
        router_kind=cast(RouterKind | None, _given(chosen_kind)),
        status=cast(OutcomeStatus | None, _given(chosen_status)),
        explored=YES_NO[is_explored],
        forced=FORCED[is_forced],
        episode_id=episode_id or None,
        since=datetime.now(UTC) - length if length else None,
        min_latency_ms=low_ms,
        max_latency_ms=high_ms,
        feedback=YES_NO[has_feedback],
        origin=cast(Origin | None, _given(chosen_origin)),
    )


def _given(choice: str) -> str | None:
    return None if choice == ANY else choice
