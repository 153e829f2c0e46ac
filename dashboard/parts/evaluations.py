"""Evaluations of routers: finished `evaluate` jobs with their ablations, as they were computed."""

from __future__ import annotations

import streamlit as st

from dashboard import go
from dashboard.data import Source
from dashboard.words import moment
from pointsman.jobs.store import Jobs

KIND = "evaluate"
ABLATIONS = "ablations"
SHOWN = 5


def section(source: Source, project: str) -> None:
    st.subheader("Evaluations and ablations")
    found = Jobs(source.engine).list(project_id=project, kind=KIND, state="done")[:SHOWN]
    if not found:
        st.caption("None yet: an `evaluate` job compares routers on rows that no training saw, with ablations.")
        return
    for job in found:
        with st.expander(f"{moment(job.ended_at)}, {job.id[-8:]}"):
            result = job.result or {}
            if ABLATIONS in result:
                st.json(result[ABLATIONS])
            else:
                st.json(result, expanded=1)
            if st.button("Open the job", key=f"evaluation-{job.id}"):
                go.to("jobs", job=job.id)
