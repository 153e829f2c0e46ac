"""The flywheel: what a turn waits for, and the story of each, link by link."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import streamlit as st

from dashboard import acting, data, go
from dashboard.people import may
from dashboard.words import NOTHING, dollars, duration, moment, plain, said
from pointsman.actions.turns import start_turn, stop_turn
from pointsman.errors import UserError
from pointsman.flywheel.store import LinkRecord, Turn
from pointsman.queries.turns import needed, newest_turns, seconds_of

PARAMETER = "turn"
MARKS: Mapping[str, str] = {
    "running": ":material/hourglass_top:", "done": ":material/check:", "skipped": ":material/redo:",
    "refused": ":material/block:", "failed": ":material/error:", "promoted": ":material/verified:",
    "proposed": ":material/how_to_vote:", "stopped": ":material/stop_circle:",
}  # fmt: skip
"""Marks beside words: nothing is said by a colour alone."""


def page() -> None:
    source = data.source(empty=True)
    st.title("Flywheel")
    acting.said()
    project = source.one
    found = newest_turns(source.engine, project)
    _next(source, project, found)
    if not found:
        st.info("No turn yet. A turn makes a label set of the log, routers of it, and lets the gate decide.")
        return
    wanted = st.query_params.get(PARAMETER)
    chosen = next((turn for turn in found if turn.id == wanted), found[0])
    _story(source, project, chosen)
    st.subheader("Turns")
    rows = st.dataframe(
        [_row(turn) for turn in found], hide_index=True, on_select="rerun", selection_mode="single-row", key="turns"
    )["selection"]["rows"]
    st.caption(f"The newest {len(found)}. Select one to read its story.")
    if rows and found[rows[0]].id != chosen.id:
        go.to("flywheel", **{PARAMETER: found[rows[0]].id})


def _next(source: data.Source, project: str, found: list[Turn]) -> None:
    if found and found[0].ended_at is None:
        return
    need = needed(source.engine, project, source.config)
    st.caption(plain(f"The next turn: {'enough has come in' if need.enough else 'not enough yet'}: {need.why}."))
    if not may(source.actor, "operator"):
        return
    force = not need.enough and st.checkbox("Start it of however little", key="turn-force")
    if st.button("Start a turn", icon=":material/autorenew:", disabled=not (need.enough or force)):
        try:
            turn = start_turn(source.engine, source.actor, project, source.config, datetime.now(UTC), force=force)
        except UserError as error:
            acting.refused(str(error))
        else:
            acting.say_next(f"Turn {turn.id} is open; the worker takes it on.")


def _story(source: data.Source, project: str, turn: Turn) -> None:
    st.subheader(f"{MARKS[turn.state]} {turn.state.capitalize()}")
    st.code(turn.id, language=None)
    st.markdown(plain(turn.reason or ("It goes on." if turn.ended_at is None else "")))
    st.caption(plain(f"Opened by {turn.opened_by} at {moment(turn.opened_at)}: {turn.opened_because}."))
    cost, mode = st.columns(2)
    cost.metric("Cost of its jobs", dollars(turn.cost), help=f"of at most {dollars(turn.budget)}")
    mode.metric("Who promotes", "the gate" if turn.mode == "auto" else "a person")
    for link in turn.links:
        _link(link)
    if turn.candidate_id is not None and st.button("Open the candidate", icon=":material/route:"):
        go.to("routers", router=turn.candidate_id)
    if turn.ended_at is None and may(source.actor, "operator"):
        _stop(source, project, turn)


def _link(link: LinkRecord) -> None:
    took = duration(seconds_of(link.began_at, link.ended_at, datetime.now(UTC)))
    with st.expander(f"{MARKS[link.state]} {link.name}: {link.state}, {took}", expanded=link.state == "running"):
        if link.reason:
            st.markdown(plain(link.reason))
        if link.numbers:
            st.dataframe(
                [{"figure": name, "value": said(value)} for name, value in _flat(link.numbers)], hide_index=True
            )
        for job in link.jobs:
            if st.button(f"Job {job[:8]}", key=f"job-{job}", icon=":material/work_history:"):
                go.to("jobs", job=job)


def _stop(source: data.Source, project: str, turn: Turn) -> None:
    with st.form("stop-turn", border=False):
        why, button = st.columns([4, 1], vertical_alignment="bottom")
        reason = why.text_input("Why stop it", max_chars=500, key="stop-turn-reason").strip()
        sent = button.form_submit_button("Stop the turn", icon=":material/stop_circle:", width="stretch")
    if sent and not reason:
        st.warning("Say why: the reason stands with the record.")
    elif sent:
        try:
            stop_turn(source.engine, source.actor, project, turn.id, datetime.now(UTC), reason=reason)
        except UserError as error:
            acting.refused(str(error))
        else:
            acting.say_next("Stopped. What serves now serves on.")


def _row(turn: Turn) -> dict[str, Any]:
    last = turn.links[-1].name if turn.links else NOTHING
    return {
        "opened": moment(turn.opened_at), "state": turn.state, "last link": last, "why": turn.reason or NOTHING,
        "cost": dollars(turn.cost), "id": turn.id,
    }  # fmt: skip


def _flat(numbers: Mapping[str, Any], above: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in numbers.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{above}{name}: ")
        else:
            found.append((f"{above}{name}", value))
    return found
