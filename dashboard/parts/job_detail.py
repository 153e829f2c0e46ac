"""One job as it goes: progress, curves, what it says, its files, and ending or repeating it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import streamlit as st

from dashboard import acting, charts, curves
from dashboard.data import Source
from dashboard.people import may
from dashboard.words import NOTHING, dollars, duration, moment, plain
from pointsman.actions.jobs import cancel_job, retry_job
from pointsman.errors import UserError
from pointsman.jobs.files import artifact_store
from pointsman.jobs.kinds import KINDS
from pointsman.jobs.store import RETRIABLE, Jobs
from pointsman.jobs.view import Artifact, JobView, MetricPoint

EVERY = 2.0  # seconds between looks at a job that runs
LINES = 500
LARGEST_DOWNLOAD = 200_000_000  # bytes


def draw(source: Source, identity: str) -> None:
    st.button("All jobs", icon=":material/arrow_back:", on_click=st.query_params.clear)
    job = Jobs(source.engine).find(identity, project_id=source.project)
    if job is None:
        st.error("There is no such job.")
        st.text(identity[:200])
        return
    st.title(f"Job {plain(job.kind)}")
    st.code(job.id, language=None)
    acting.said()
    _buttons(source, job)
    # Only a job that still runs is looked at again and again.
    st.fragment(_live, run_every=None if job.finished else EVERY)(source, job.id, job.finished)
    with st.expander("Parameters"):
        st.json(job.params)
    _compare(source, job)


def _live(source: Source, identity: str, finished: bool) -> None:
    jobs = Jobs(source.engine)
    job = jobs.get(identity)
    if job.finished and not finished:
        st.rerun()  # the whole page: buttons change, and looking ends
    _facts(job)
    _progress(job)
    metrics = by_name(jobs.metrics(identity))
    if metrics:
        st.subheader("Curves")
        pictures(list(metrics), lambda name: curves.metric(name, {job.kind: metrics[name]}))
    st.subheader("What it said")
    lines = jobs.logs(identity, limit=LINES)
    if lines:
        text = "\n".join(f"{line.at.astimezone(UTC):%H:%M:%S} {line.level:7} {line.message}" for line in lines)
        st.code(text, language=None, wrap_lines=True, height=min(360, 60 + 22 * len(lines)))
    else:
        st.caption("Nothing yet.")
    _files(source, jobs.artifacts(identity))
    if job.result is not None:
        st.subheader("Result")
        st.json(job.result)


def _facts(job: JobView) -> None:
    with st.container(horizontal=True, gap="small"):
        took = ((job.ended_at or datetime.now(UTC)) - job.started_at).total_seconds() if job.started_at else None
        st.metric("State", job.state, border=True, width=170)
        st.metric("Running for" if not job.ended_at else "Took", duration(took), border=True, width=170)
        st.metric(
            "Cost, USD", dollars(job.cost), _budget(job), delta_color="off", delta_arrow="off", border=True, width=170
        )
        st.metric("Attempt", str(job.attempt), border=True, width=170)
        st.metric("Asked by", job.asked_by or NOTHING, border=True, width=170)
    if job.reason:
        st.caption("Why:")
        st.text(job.reason)
    st.caption(f"Queued {moment(job.created_at)}, started {moment(job.started_at)}, ended {moment(job.ended_at)}")


def _progress(job: JobView) -> None:
    stages = KINDS[job.kind].stages if job.kind in KINDS else ()
    marks = ["✓ " + name if name in job.stages_done else "▶ " + name if name == job.stage else name for name in stages]
    if marks:
        st.caption(plain("Stages: ") + plain(" → ".join(marks)))
    if job.total and not job.finished:
        left = f", about {duration(job.eta_s)} left" if job.eta_s is not None else ""
        st.progress(min(1.0, (job.done or 0) / job.total), text=f"{job.done or 0:,} of {job.total:,}{left}")


def _budget(job: JobView) -> str:
    return "no budget" if job.budget is None else f"of {dollars(job.budget)}"


def _buttons(source: Source, job: JobView) -> None:
    allowed = may(source.actor, "operator")
    with st.container(horizontal=True):
        if not job.finished and st.button("Cancel the job", icon=":material/stop:", disabled=not allowed):
            _do(
                lambda: cancel_job(source.engine, source.actor, job.project_id, job.id, datetime.now(UTC)), "Cancelled."
            )
        if job.state in RETRIABLE and st.button("Try again", icon=":material/replay:", disabled=not allowed):
            _do(
                lambda: retry_job(source.engine, source.actor, job.project_id, job.id, datetime.now(UTC)),
                "Queued again.",
            )


def _do(action: Callable[[], JobView], message: str) -> None:
    try:
        action()
    except UserError as error:
        acting.refused(str(error))
        return
    acting.say_next(message)


def _files(source: Source, artifacts: Sequence[Artifact]) -> None:
    if not artifacts:
        return
    st.subheader("Files")
    store = artifact_store(source.settings, source.config.jobs.artifacts)
    for one in artifacts:
        name, button = st.columns([4, 1], vertical_alignment="center")
        name.text(f"{one.name}, {one.size:,} bytes, {one.hash[:12]}")
        button.download_button(
            "Download",
            lambda one=one: store.read(one.hash, one.suffix),  # type: ignore[misc]
            file_name=one.name.rpartition("/")[2],
            mime=one.media,
            key=f"file-{one.id}",
            on_click="ignore",
            disabled=one.size > LARGEST_DOWNLOAD,
        )


def _compare(source: Source, job: JobView) -> None:
    others = [one for one in Jobs(source.engine).list(project_id=job.project_id, kind=job.kind) if one.id != job.id]
    if not others:
        return
    with st.form("compare"):
        chosen = st.selectbox(
            "Compare with another run",
            others,
            format_func=lambda one: f"{moment(one.created_at)}, {one.state}, {one.id[-8:]}",
            key="compare-with",
        )
        if st.form_submit_button("Compare") and chosen is not None:
            st.query_params["with"] = chosen.id
            st.rerun()


def by_name(points: Sequence[MetricPoint]) -> dict[str, list[MetricPoint]]:
    """A job's curves."""
    found: dict[str, list[MetricPoint]] = defaultdict(list)
    for point in points:
        found[point.name].append(point)
    return dict(found)


def pictures(names: Sequence[str], picture: Callable[[str], charts.Chart]) -> None:
    """Two charts beside each other, or below each other where it is narrow."""
    for place in range(0, len(names), 2):
        for column, name in zip(st.columns(2), names[place : place + 2], strict=False):
            with column:
                charts.show(picture(name), f"{name} by step")


def text_of(value: object) -> str:
    """A parameter's or result's value on one line."""
    return json.dumps(value, ensure_ascii=False, default=str)
