"""Who did what, newest first: every action of a person, a policy or a gate in this project."""

from __future__ import annotations

import json

import streamlit as st

from dashboard.data import Source
from dashboard.words import moment
from pointsman.actions.actor import actions_of

SHOWN = 100


def section(source: Source, project: str) -> None:
    st.subheader("Who did what")
    with source.engine.connect() as connection:
        found = actions_of(connection, project, SHOWN)
    if not found:
        st.caption("Nothing was done yet.")
        return
    st.dataframe(
        [
            {"When, UTC": moment(row.done_at).removesuffix(" UTC"), "Who": row.actor, "Role": row.role,
             "What": row.action.replace("_", " "), "Of": row.subject or "", "Why": row.reason or "",
             "Detail": json.dumps(row.detail, ensure_ascii=False) if row.detail else ""}
            for row in found
        ],
        hide_index=True,
    )  # fmt: skip
