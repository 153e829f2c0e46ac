"""The form that narrows the list of decisions down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import streamlit as st

from dashboard.ranges import RANGES
from pointsman.queries import DecisionFilter
from pointsman.words import Forced, Origin, OutcomeStatus, Pattern, RouterKind, members

ANY = "any"
DISAGREE = "A candidate or shadow that was asked beside the router that served chose another worker."
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
    "filter-pattern",
    "filter-tag",
    "filter-key",
    "filter-disagree",
    "filter-reward-low",
    "filter-reward-high",
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
        pattern, disagree, tag, key = st.columns(4)
        chosen_pattern = pattern.selectbox("Pattern", [ANY, *members(Pattern)], key="filter-pattern")
        disagreed = disagree.selectbox("Routers disagree", list(YES_NO), key="filter-disagree", help=DISAGREE)
        tagged = tag.text_input("Tag", key="filter-tag", max_chars=200).strip()
        keyed = key.text_input("API key begins with", key="filter-key", max_chars=64, help="As keys are shown.").strip()
        low, high, worst, best = st.columns(4)
        low_ms = low.number_input("Latency from, ms", min_value=0, value=None, key="filter-low")
        high_ms = high.number_input("Latency to, ms", min_value=0, value=None, key="filter-high")
        low_reward = worst.number_input("Reward from", 0.0, 1.0, None, key="filter-reward-low")
        high_reward = best.number_input("Reward to", 0.0, 1.0, None, key="filter-reward-high")
        episode_id = st.text_input("Episode id", key="filter-episode").strip()
        st.form_submit_button("Apply", type="primary", on_click=on_change)
    length = RANGES[chosen_range]
    return DecisionFilter(
        search=search or None,
        worker=_given(chosen_worker),
        pattern=cast(Pattern | None, _given(chosen_pattern)),
        router_kind=cast(RouterKind | None, _given(chosen_kind)),
        status=cast(OutcomeStatus | None, _given(chosen_status)),
        explored=YES_NO[is_explored],
        forced=FORCED[is_forced],
        episode_id=episode_id or None,
        since=datetime.now(UTC) - length if length else None,
        min_latency_ms=low_ms,
        max_latency_ms=high_ms,
        feedback=YES_NO[has_feedback],
        min_reward=low_reward,
        max_reward=high_reward,
        tag=tagged or None,
        key=keyed or None,
        disagreement=YES_NO[disagreed],
        origin=cast(Origin | None, _given(chosen_origin)),
    )


def _given(choice: str) -> str | None:
    return None if choice == ANY else choice
