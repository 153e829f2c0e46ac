"""Data: label sets and their reports, saved filters as data sets, export and import, retention, and who did what."""

from __future__ import annotations

import streamlit as st

from dashboard import acting, data
from dashboard.parts import actor_log, imports, label_sets, retention, saved_sets


def page() -> None:
    source = data.source(empty=True)
    st.title("Data")
    acting.said()
    project = source.one
    label_sets.section(source, project)
    saved_sets.section(source, project)
    imports.section(source, project)
    retention.section(source, project)
    actor_log.section(source, project)
