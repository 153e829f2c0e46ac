"""The overview's charts: Altair specifications from plain values, in one palette, without a page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import altair as alt

# Altair asks for pandas by sys.modules, where it would find one that another visit's thread is still importing.
import pandas  # noqa: F401
import streamlit as st

from dashboard.palette import GREY, OKABE_ITO, OUTCOME_COLOURS, named, worker_scale
from dashboard.ranges import words
from pointsman.queries import Overview

Chart = alt.Chart | alt.LayerChart | alt.FacetChart
Rows = list[dict[str, Any]]
MOST_VERSIONS = 12
LABEL_LIMIT = 160  # pixels of a worker's name on an axis


def show(chart: Chart, description: str) -> None:
    st.altair_chart(chart, alt=description)


def traffic(shown: Overview, workers: Sequence[str]) -> Chart:
    return _over_time(shown, workers, "decisions", "decisions", ",d")


def cost(shown: Overview, workers: Sequence[str]) -> Chart:
    return _over_time(shown, workers, "cost", "USD", "$,.4~f")


def share(shown: Overview, workers: Sequence[str]) -> Chart:
    """A bar per worker: its share of the decisions that chose somebody."""
    rows: Rows = [
        {"worker": line.worker, "colour": named(line.worker, workers), "share": line.share, "n": line.chosen}
        for line in shown.workers
    ]
    base = alt.Chart(_data(rows)).encode(y=_worker_axis(rows))
    bars = base.mark_bar(cornerRadiusEnd=2).encode(
        x=alt.X("share:Q", title="share of decisions", axis=alt.Axis(format=".0%", tickCount=5)),
        color=_colour(rows, workers),
        tooltip=["worker:N", alt.Tooltip("share:Q", format=".1%"), alt.Tooltip("n:Q", title="decisions")],
    )
    return _sized(bars, rows)


def success(shown: Overview, workers: Sequence[str]) -> Chart:
    """A point per worker with its 95% Wilson interval."""
    rows: Rows = []
    for line in shown.workers:
        bounds = line.success.wilson()
        if bounds is not None:
            rows.append(
                {
                    "worker": line.worker,
                    "colour": named(line.worker, workers),
                    "share": line.success.share,
                    "low": bounds[0],
                    "high": bounds[1],
                    "n": line.success.n,
                }
            )
    base = alt.Chart(_data(rows)).encode(
        y=_worker_axis(rows),
        color=_colour(rows, workers),
        tooltip=[
            "worker:N",
            alt.Tooltip("share:Q", title="success", format=".1%"),
            alt.Tooltip("low:Q", title="from", format=".1%"),
            alt.Tooltip("high:Q", title="to", format=".1%"),
            "n:Q",
        ],
    )
    axis = alt.Axis(format=".0%", tickCount=5)
    title = "success, 95% interval"
    line_of = base.mark_rule(strokeWidth=3).encode(
        x=alt.X("low:Q", title=title, axis=axis, scale=alt.Scale(zero=False)), x2="high:Q"
    )
    points = base.mark_point(filled=True, size=110, opacity=1).encode(x=alt.X("share:Q", title=title))
    return _sized(alt.layer(line_of, points), rows)


def latency(shown: Overview, workers: Sequence[str]) -> Chart:
    """Three marks per worker, told apart by shape: median, 95th and 99th percentile."""
    rows: Rows = [
        {"worker": line.worker, "percentile": name, "seconds": value / 1000, "n": line.latency.n}
        for line in shown.workers
        for name, value in (("p50", line.latency.p50), ("p95", line.latency.p95), ("p99", line.latency.p99))
        if value is not None
    ]
    base = alt.Chart(_data(rows)).encode(y=_worker_axis(rows))
    seconds = alt.X("seconds:Q", title="seconds", axis=alt.Axis(tickCount=5))
    span = base.mark_rule(color=GREY).encode(x=alt.X("min(seconds):Q", title="seconds"), x2="max(seconds):Q")
    points = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=seconds,
        shape=alt.Shape("percentile:N", title=None, legend=alt.Legend(orient="top")),
        color=alt.Color(
            "percentile:N",
            title=None,
            scale=alt.Scale(domain=["p50", "p95", "p99"], range=[OKABE_ITO[0], OKABE_ITO[1], OKABE_ITO[5]]),
            legend=alt.Legend(orient="top"),
        ),
        tooltip=["worker:N", "percentile:N", alt.Tooltip("seconds:Q", format=",.3f"), "n:Q"],
    )
    return _sized(alt.layer(span, points), rows, extra=40)


def outcomes(shown: Overview) -> Chart:
    rows: Rows = [
        {"what": status, "decisions": count, "colour": OUTCOME_COLOURS.get(status, GREY)}
        for status, count in shown.outcomes.items()
    ]
    return _counts(rows)


def deciders(shown: Overview) -> Chart:
    """Router kinds, then the reasons of forced decisions."""
    rows: Rows = [
        {"what": f"{kind} router", "decisions": count, "colour": OKABE_ITO[0]}
        for kind, count in shown.router_kinds.items()
    ]
    rows += [
        {"what": f"forced: {reason}", "decisions": count, "colour": GREY}
        for reason, count in shown.totals.forced.items()
    ]
    return _counts(rows)


def patterns(shown: Overview) -> Chart:
    rows: Rows = [{"what": name, "decisions": n, "colour": OKABE_ITO[0]} for name, n in shown.patterns.items()]
    return _counts(rows)


def versions(shown: Overview) -> Chart:
    """By the beginning of each router version's id."""
    rows: Rows = [{"what": name[:8], "decisions": n, "colour": OKABE_ITO[2]} for name, n in shown.versions.items()]
    return _counts(rows[:MOST_VERSIONS])


def _over_time(shown: Overview, workers: Sequence[str], field: str, title: str, form: str) -> Chart:
    rows = _stacked(shown, workers, field)
    # Hours on a short span, days on a long one; both in UTC, as the log keeps time.
    days = bool(shown.series) and shown.series[-1].start - shown.series[0].start > timedelta(days=2)
    axis = alt.Axis(tickCount=6, format="%d %b" if days else "%H:%M", labelOverlap=True)
    bars: alt.Chart = (
        alt.Chart(_data(rows))
        .mark_rect(xOffset=0.5, x2Offset=-0.5)
        .encode(
            x=alt.X("start:T", title="time, UTC", scale=alt.Scale(type="utc"), axis=axis),
            x2="end:T",
            y=alt.Y("low:Q", title=f"{title} per {words(shown.bucket)}", axis=alt.Axis(format=form, tickCount=5)),
            y2="high:Q",
            color=_colour(rows, workers, legend=alt.Legend(orient="top", columns=4, title=None)),
            tooltip=[
                alt.Tooltip("utcyearmonthdatehoursminutes(start):T", title="from, UTC"),
                "worker:N",
                alt.Tooltip("value:Q", title=title, format=form),
            ],
        )
    )
    return bars.properties(height=320)


def _stacked(shown: Overview, workers: Sequence[str], field: str) -> Rows:
    """Bars on top of each other in the order of the pool: Vega does not stack bars with two time edges."""
    order = {name: position for position, name in enumerate(workers)}
    height: dict[datetime, float] = defaultdict(float)
    rows: Rows = []
    for point in sorted(shown.series, key=lambda point: (order.get(point.worker, len(order)), point.worker)):
        value = float(getattr(point, field))
        low = height[point.start]
        height[point.start] = low + value
        rows.append(
            {
                "start": point.start.isoformat(),
                "end": (point.start + shown.bucket).isoformat(),
                "worker": point.worker,
                "colour": named(point.worker, workers),
                "value": value,
                "low": low,
                "high": low + value,
            }
        )
    return rows


def _counts(rows: Rows) -> Chart:
    base = alt.Chart(_data(rows)).encode(
        y=alt.Y("what:N", title=None, sort=[row["what"] for row in rows], axis=alt.Axis(labelLimit=LABEL_LIMIT)),
        x=alt.X("decisions:Q", title="decisions", axis=alt.Axis(format=",d", tickCount=5)),
    )
    bars = base.mark_bar(cornerRadiusEnd=2).encode(
        color=alt.Color("colour:N", scale=None), tooltip=["what:N", alt.Tooltip("decisions:Q", format=",d")]
    )
    labels = base.mark_text(align="left", dx=5, color=GREY).encode(text=alt.Text("decisions:Q", format=",d"))
    return _sized(alt.layer(bars, labels), rows, key="what")


def _colour(rows: Rows, workers: Sequence[str], legend: alt.Legend | None = None) -> alt.Color:
    scale = worker_scale(workers, (row["colour"] for row in rows))
    return alt.Color("colour:N", scale=scale, legend=legend, title="worker")


def _worker_axis(rows: Rows) -> alt.Y:
    order = list(dict.fromkeys(row["worker"] for row in rows))
    return alt.Y("worker:N", title=None, sort=order, axis=alt.Axis(labelLimit=LABEL_LIMIT))


def _sized(chart: Chart, rows: Rows, *, key: str = "worker", extra: int = 0) -> Chart:
    """A height that grows with the number of lines."""
    lines = len({row[key] for row in rows})
    return chart.properties(height=max(80, 34 * lines) + 80 + extra)


def _data(rows: Iterable[dict[str, Any]]) -> alt.InlineData:
    return alt.InlineData(values=list(rows))
