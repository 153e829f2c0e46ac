"""Workers: how they do, what they are good at, who beats whom; and one worker's card, prices and drift."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import streamlit as st

from dashboard import acting, charts, data, pairs
from dashboard.parts import alarms, cards
from dashboard.shared import MINUTE, once, shared
from dashboard.words import NOTHING, interval, milliseconds, moment, number, percent
from pointsman.queries import overview
from pointsman.queries.workers import duels, health, price_history, success_by_tag, watched

DAY = timedelta(days=1)
DRIFT_DAYS = 30
MOST_TAGS = 12


def page() -> None:
    source = data.source()
    st.title("Workers")
    acting.said()
    _health(source)
    _alarms(source)
    left, right = st.columns(2, gap="large")
    with left:
        _tags(source)
    with right:
        _duels(source)
    _drift(source)
    st.subheader("One worker")
    chosen = st.selectbox("Worker", source.workers, key="worker")
    if chosen is not None:
        cards.draw(source, chosen)
        _prices(source, chosen)


def _health(source: data.Source) -> None:
    st.subheader("Health, last day")
    found = {line.worker: line for line in health(source.engine, source.project, datetime.now(UTC) - DAY)}
    rows = []
    for worker in source.workers:
        line = found.get(worker)
        rows.append(
            {
                "Worker": worker,
                "Calls": line.ok.n if line else 0,
                "Went well": percent(line.ok) if line else NOTHING,
                "95% interval": interval(line.ok) if line else NOTHING,
                "Commonest fault": (line.fault if line else None) or NOTHING,
                "p50": milliseconds(line.latency.p50) if line else NOTHING,
                "p95": milliseconds(line.latency.p95) if line else NOTHING,
                "Timed": line.latency.n if line else 0,
            }
        )
    st.dataframe(rows, hide_index=True)
    st.caption("Calls that served traffic, retries too. Latency is of one call, from sending to the end of its answer.")


def _alarms(source: data.Source) -> None:
    st.subheader("Alarms")
    alarms.listed(source)
    looked = watched(source.engine, source.project)
    if looked:
        last = max(when for _, _, when in looked)
        st.caption(f"Watched: {len(looked)} things, last looked at {moment(last)}.")
    else:
        st.caption("Nothing is watched for drift yet: start a `drift` job, or schedule one hourly.")


def _tags(source: data.Source) -> None:
    st.subheader("Success by tag of the request")
    lines = once(source, success_by_tag)
    tags = list(dict.fromkeys(line.tag for line in lines))[:MOST_TAGS]
    if not tags:
        st.caption("No request has a tag: clients give them as `metadata.pointsman.tags`.")
        return
    shown = [line for line in lines if line.tag in tags]
    charts.show(pairs.tags(shown), "Success by tag and worker")
    st.caption(f"The {len(tags)} commonest tags of the newest decisions; a cell says share and n.")


def _duels(source: data.Source) -> None:
    st.subheader("Who beats whom")
    found = once(source, duels)
    if not found:
        st.caption("No request was answered by several workers with scores: a `probe` or `audit` job makes such rows.")
        return
    charts.show(pairs.duels(found), "Share of requests on which the row's worker did better than the column's")
    st.dataframe(
        [
            {"Worker": one.worker, "Against": one.other, "Better": one.wins, "As good": one.ties,
             "Requests": one.n, "Share": number(one.share)}
            for one in found
        ],
        hide_index=True,
    )  # fmt: skip


def _drift(source: data.Source) -> None:
    st.subheader("Success by day")
    since = datetime.now(UTC) - timedelta(days=DRIFT_DAYS)
    shown = shared().get(
        ("drift", source.database, source.project),
        lambda: overview(source.engine, source.project, since, None, DAY),
        MINUTE,
    )
    if shown.series:
        charts.show(pairs.by_day(shown.series, source.workers), "Success by day and worker with 95% intervals")
        st.caption("The chosen worker itself answered with outcome ok, by UTC day, with 95% Wilson intervals.")


def _prices(source: data.Source, worker: str) -> None:
    st.markdown("**Prices**, USD per million tokens")
    lines = price_history(source.engine, worker)
    if not lines:
        st.caption("No price is known: costs of this worker are unknown.")
        return
    st.dataframe(
        [
            {"Since": moment(line.created_at), "Input": str(line.input.normalize()),
             "Output": str(line.output.normalize()), "Cached input": str(line.cached_input.normalize())}
            for line in lines
        ],
        hide_index=True,
    )  # fmt: skip
