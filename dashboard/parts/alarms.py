"""Alarms that are on: seen by whom, and done with."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import streamlit as st

from dashboard import acting
from dashboard.data import Source
from dashboard.people import may
from dashboard.words import moment, plain
from pointsman.actions.alarms import acknowledge_alarm, resolve_alarm
from pointsman.drift.alarms import alarms_on

SHOWN = 20


def listed(source: Source) -> None:
    """Each with its buttons, newest first."""
    with source.engine.connect() as connection:
        found = alarms_on(connection, source.project, limit=SHOWN)
    if not found:
        st.caption("None is on.")
    for alarm in found:
        _one(source, alarm)


def _one(source: Source, alarm: Any) -> None:
    identity, project = str(alarm.id), str(alarm.project_id)
    with st.container(border=True):
        what, seen, over = st.columns([6, 1, 1], vertical_alignment="center")
        with what:
            st.text(alarm.message)
            known = f", seen by {alarm.acknowledged_by}" if alarm.acknowledged_by else ""
            st.caption(plain(f"{alarm.kind}, since {moment(alarm.raised_at)}{known}"))
        now = datetime.now(UTC)
        if seen.button("Seen", key=f"seen-{identity}", disabled=not may(source.actor, "reviewer") or bool(known)):
            acting.act(source.engine, lambda c: acknowledge_alarm(c, source.actor, project, identity, now))
            st.rerun()
        if over.button("Over", key=f"over-{identity}", disabled=not may(source.actor, "operator")):
            acting.act(source.engine, lambda c: resolve_alarm(c, source.actor, project, identity, now))
            st.rerun()
