"""Two runs of one kind beside each other: what was asked differently, what came out, their curves in one picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from dashboard import curves
from dashboard.data import Source
from dashboard.parts.job_detail import by_name, pictures, text_of
from dashboard.words import NOTHING, dollars, duration, moment
from pointsman.jobs.store import Jobs
from pointsman.jobs.view import JobView


def draw(source: Source, first: str, second: str) -> None:
    st.button("Back to the job", icon=":material/arrow_back:", on_click=_back)
    jobs = Jobs(source.engine)
    found = [jobs.find(one, project_id=source.project) for one in (first, second)]
    runs = [job for job in found if job is not None]
    if len(runs) < 2:
        st.error("One of the two jobs does not exist here.")
        return
    st.title("Two runs")
    names = [f"A {runs[0].id[-8:]}", f"B {runs[1].id[-8:]}"]
    st.dataframe([{"": row, names[0]: a, names[1]: b} for row, a, b in facts(*runs)], hide_index=True)
    for title, pick in (("Parameters that differ", "params"), ("Results", "result")):
        rows = differing(getattr(runs[0], pick) or {}, getattr(runs[1], pick) or {}, whole=pick == "result")
        st.subheader(title)
        if rows:
            st.dataframe([{"": name, names[0]: a, names[1]: b} for name, a, b in rows], hide_index=True)
        else:
            st.caption("None.")
    metrics = [by_name(jobs.metrics(job.id)) for job in runs]
    every = list(dict.fromkeys([*metrics[0], *metrics[1]]))
    if every:
        st.subheader("Curves")
        pictures(
            every,
            lambda name: curves.metric(
                name, {run: found[name] for run, found in zip(names, metrics, strict=True) if name in found}
            ),
        )


def facts(first: JobView, second: JobView) -> list[tuple[str, str, str]]:
    """State, time and money of both."""
    return [
        ("State", first.state, second.state),
        ("Queued", moment(first.created_at), moment(second.created_at)),
        ("Took", _took(first), _took(second)),
        ("Cost, USD", dollars(first.cost), dollars(second.cost)),
        ("Attempts", str(first.attempt), str(second.attempt)),
    ]


def differing(
    first: Mapping[str, Any], second: Mapping[str, Any], *, whole: bool = False
) -> list[tuple[str, str, str]]:
    """Keys whose values differ (`whole`: all), with both values."""
    names = dict.fromkeys([*first, *second])
    return [
        (name, text_of(first.get(name)), text_of(second.get(name)))
        for name in names
        if whole or first.get(name) != second.get(name)
    ]


def _took(job: JobView) -> str:
    if job.started_at is None or job.ended_at is None:
        return NOTHING
    return duration((job.ended_at - job.started_at).total_seconds())


def _back() -> None:
    st.query_params.pop("with", None)
