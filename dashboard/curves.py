"""Curves: a job's metrics, two jobs' beside each other, a gate's evidence against its thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from dashboard.charts import Chart
from dashboard.palette import GREY, OKABE_ITO
from pointsman.jobs.view import MetricPoint

HEIGHT = 220
MOST = 2_000  # points of a line that are drawn


def metric(name: str, runs: Mapping[str, Sequence[MetricPoint]]) -> Chart:
    """One metric by step, a line per run; told apart by colour and by dash."""
    rows = [
        {"run": run, "step": point.step, "value": point.value} for run, points in runs.items() for point in thin(points)
    ]
    names = list(runs)
    legend = alt.Legend(orient="top", title=None) if len(names) > 1 else None
    drawn: Chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(point=len(rows) < 60, strokeWidth=2)
        .encode(
            x=alt.X("step:Q", title="step", axis=alt.Axis(tickCount=5, format="d")),
            y=alt.Y("value:Q", title=name, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5)),
            color=alt.Color("run:N", scale=alt.Scale(domain=names, range=list(OKABE_ITO[: len(names)])), legend=legend),
            strokeDash=alt.StrokeDash("run:N", sort=names, legend=None),
            tooltip=["run:N", "step:Q", alt.Tooltip("value:Q", title=name, format=".6~g")],
        )
        .properties(height=HEIGHT)
    )
    return drawn


def evidence(rows: Sequence[Mapping[str, Any]], promote_at: float, roll_back_at: float) -> Chart:
    """ln E and ln R after each row of a gate, and the thresholds ln(1/α) at which it decides."""
    lines = [("to promote", "log_e", OKABE_ITO[0]), ("to roll back", "log_r", OKABE_ITO[5])]
    values = [{"row": row["seq"], "what": what, "value": row[key]} for row in thin(rows) for what, key, _ in lines]
    limits = [
        {"what": "to promote", "at": promote_at, "label": f"promote at {promote_at:.2f}"},
        {"what": "to roll back", "at": roll_back_at, "label": f"roll back at {roll_back_at:.2f}"},
    ]
    scale = alt.Scale(domain=[what for what, _, _ in lines], range=[colour for _, _, colour in lines])
    colour = alt.Color("what:N", scale=scale, legend=alt.Legend(orient="top", title=None))
    curves = (
        alt.Chart(alt.InlineData(values=values))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("row:Q", title="row of the gate", axis=alt.Axis(format="d", tickCount=6)),
            y=alt.Y("value:Q", title="evidence, ln E"),
            color=colour,
            strokeDash=alt.StrokeDash("what:N", legend=None),
            tooltip=["row:Q", "what:N", alt.Tooltip("value:Q", format=".3f")],
        )
    )
    base = alt.Chart(alt.InlineData(values=limits)).encode(y="at:Q")
    rules = base.mark_rule(strokeDash=[6, 4]).encode(color=colour)
    labels = base.mark_text(align="left", dx=4, dy=-7, color=GREY).encode(x=alt.value(0), text="label:N")
    return alt.layer(curves, rules, labels).properties(height=280)


def effect(rows: Sequence[Mapping[str, Any]]) -> Chart:
    """The mean advantage of the candidate after each row, in units of reward, with its confidence sequence."""
    base = alt.Chart(alt.InlineData(values=list(thin(rows)))).encode(
        x=alt.X("row:Q", title="row of the gate", axis=alt.Axis(format="d", tickCount=6))
    )
    band = base.mark_area(opacity=0.25, color=OKABE_ITO[4]).encode(
        y=alt.Y("low:Q", title="candidate − incumbent, reward"), y2="high:Q"
    )
    line = base.mark_line(strokeWidth=2, color=OKABE_ITO[0]).encode(
        y="mean:Q", tooltip=["row:Q", alt.Tooltip("mean:Q", format=".4f"), "low:Q", "high:Q"]
    )
    zero = alt.Chart(alt.InlineData(values=[{"at": 0}])).mark_rule(color=GREY, strokeDash=[4, 4]).encode(y="at:Q")
    return alt.layer(band, line, zero).properties(height=260)


def thin(rows: Sequence[Any]) -> Sequence[Any]:
    """At most `MOST` of them, evenly, the last one always."""
    if len(rows) <= MOST:
        return rows
    stride = -(-len(rows) // MOST)
    return [*rows[::stride], rows[-1]]
