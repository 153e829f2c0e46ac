"""Jobs: start one from a form, watch it, end it, and lay two runs beside each other."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import streamlit as st

from dashboard import acting, data
from dashboard.parts import job_compare, job_detail, params_form
from dashboard.people import may
from dashboard.words import NOTHING, dollars, duration, moment, percent, plain
from pointsman.actions.jobs import start_job
from pointsman.errors import UserError
from pointsman.jobs.facts import read_facts
from pointsman.jobs.kinds import KINDS, Estimate, JobKind, estimate
from pointsman.jobs.reading import PAGE
from pointsman.jobs.store import Jobs
from pointsman.jobs.view import JobView
from pointsman.words import JobState, members

PARAMETER, OTHER = "job", "with"
ANY = "any"


def page() -> None:
    source = data.source(empty=True)
    wanted, other = st.query_params.get(PARAMETER), st.query_params.get(OTHER)
    if wanted and other:
        job_compare.draw(source, wanted, other)
    elif wanted:
        job_detail.draw(source, wanted)
    else:
        _list(source)


def _list(source: data.Source) -> None:
    st.title("Jobs")
    acting.said()
    _start(source)
    kind_column, state_column = st.columns(2)
    kind = kind_column.selectbox("Kind", [ANY, *KINDS], key="jobs-kind")
    state = state_column.selectbox("State", [ANY, *members(JobState)], key="jobs-state")
    found = Jobs(source.engine).list(
        project_id=source.project, kind=None if kind == ANY else kind, state=None if state == ANY else state
    )
    if not found:
        st.info("No job yet, or none that these filters let through.")
        return
    chosen = st.dataframe(
        [_row(job) for job in found],
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        key=f"jobs-{found[0].id}-{len(found)}",
    )["selection"]["rows"]
    st.caption(f"The newest {len(found)} of at most {PAGE}. Select one to open it.")
    if chosen and chosen[0] < len(found):
        st.query_params[PARAMETER] = found[chosen[0]].id
        st.rerun()


def _start(source: data.Source) -> None:
    with st.expander("Start a job", icon=":material/play_arrow:"):
        if not may(source.actor, "operator"):
            st.caption(f"Starting a job needs the role operator; yours is {source.actor.role}.")
            return
        project = source.one
        name = st.selectbox(
            "What", list(KINDS), key="start-kind", format_func=lambda key: f"{key}: {KINDS[key].summary}"
        )
        kind = KINDS[name]
        if kind.extra:
            st.caption(f"The worker that runs it needs `pip install 'pointsman[{kind.extra}]'`.")
        with st.form(f"start-{name}", border=False):
            params = params_form.fields(kind)
            budget = st.number_input(
                "Budget, USD", min_value=0.0, value=None, key=f"budget-{name}", help="The job ends when it is spent."
            )
            tell, go = st.columns(2)
            asked = tell.form_submit_button("What will it take?", width="stretch")
            sent = go.form_submit_button("Start", type="primary", width="stretch")
        if asked:
            _foretell(source, kind, params)
        if sent:
            _go(source, project, kind, params, None if budget is None else Decimal(str(budget)))


def _foretell(source: data.Source, kind: JobKind, params: dict[str, object]) -> None:
    try:
        told = estimate(kind.name, params, read_facts(source.engine, len(source.config.workers)))
    except UserError as error:
        acting.refused(str(error))
        return
    st.info(foretold(told))


def foretold(told: Estimate) -> str:
    """Time and cost in words; what cannot be told is said to be unknown."""
    seconds = "unknown" if told.seconds is None else f"about {duration(told.seconds)}"
    cost = "unknown" if told.cost_usd is None else f"about {dollars(told.cost_usd)}".replace("$", "\\$")
    return f"Time: {seconds}. Cost: {cost}. From {plain(told.basis)}."


def _go(source: data.Source, project: str, kind: JobKind, params: dict[str, object], budget: Decimal | None) -> None:
    try:
        job = start_job(source.engine, source.actor, project, kind.name, params, datetime.now(UTC), budget=budget)
    except UserError as error:
        acting.refused(str(error))
        return
    st.query_params[PARAMETER] = job.id
    st.rerun()


def _row(job: JobView) -> dict[str, object]:
    done = None if not job.total else percent((job.done or 0) / job.total)
    return {
        "Queued, UTC": moment(job.created_at).removesuffix(" UTC"),
        "Kind": job.kind,
        "State": job.state,
        "Stage": job.stage or NOTHING,
        "Done": done or NOTHING,
        "Cost": dollars(job.cost),
        "Asked by": job.asked_by or NOTHING,
        "Reason": job.reason or "",
        "Id": job.id,
    }
