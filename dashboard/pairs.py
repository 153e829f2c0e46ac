"""Grids of two things against each other, and success by day: for the workers' page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import altair as alt

from dashboard.charts import LABEL_LIMIT, Chart
from dashboard.palette import named, worker_scale
from pointsman.queries import Point
from pointsman.queries.workers import Duel, TagLine

CELL = 46  # pixels
# Blue to orange through grey: told apart by colour-blind people, and by lightness alone.
DIVERGING = alt.Scale(domain=[0, 0.5, 1], range=["#D55E00", "#BDBDBD", "#0072B2"])


def tags(lines: Sequence[TagLine]) -> Chart:
    rows: list[dict[str, object]] = [
        {
            "row": line.tag,
            "column": line.worker,
            "share": line.ok.share,
            "n": line.ok.n,
            "label": _label(line.ok.share, line.ok.n),
        }
        for line in lines
    ]
    return _grid(rows, "tag", "worker")


def duels(found: Sequence[Duel]) -> Chart:
    rows = [
        {"row": one.worker, "column": one.other, "share": one.share, "n": one.n, "label": _label(one.share, one.n)}
        for one in found
    ]
    return _grid(rows, "worker", "against")


def by_day(points: Sequence[Point], workers: Sequence[str]) -> Chart:
    """Success with its 95% interval, a line per worker; days of the UTC calendar."""
    rows = []
    for point in points:
        bounds = point.success.wilson()
        if bounds is not None:
            rows.append(
                {
                    "day": (point.start + timedelta(hours=12)).isoformat(),
                    "worker": point.worker,
                    "colour": named(point.worker, workers),
                    "share": point.success.share,
                    "low": bounds[0],
                    "high": bounds[1],
                    "n": point.success.n,
                }
            )
    scale = worker_scale(workers, (str(row["colour"]) for row in rows))
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("day:T", title="day, UTC", scale=alt.Scale(type="utc"), axis=alt.Axis(format="%d %b", tickCount=6)),
        color=alt.Color("colour:N", scale=scale, legend=alt.Legend(orient="top", title=None)),
        detail="worker:N",
        tooltip=["worker:N", alt.Tooltip("share:Q", title="success", format=".1%"), "n:Q"],
    )
    axis = alt.Axis(format=".0%", tickCount=5)
    bars = base.mark_rule(opacity=0.5).encode(
        y=alt.Y("low:Q", title="success, 95% interval", axis=axis, scale=alt.Scale(zero=False)), y2="high:Q"
    )
    lines = base.mark_line(point=True).encode(y="share:Q")
    return alt.layer(bars, lines).properties(height=280)


def _grid(rows: Sequence[dict[str, object]], vertical: str, horizontal: str) -> Chart:
    names = list(dict.fromkeys(str(row["row"]) for row in rows))
    base = alt.Chart(alt.InlineData(values=list(rows))).encode(
        y=alt.Y("row:N", title=vertical, sort=names, axis=alt.Axis(labelLimit=LABEL_LIMIT)),
        x=alt.X("column:N", title=horizontal, axis=alt.Axis(labelLimit=LABEL_LIMIT, labelAngle=0, orient="top")),
        tooltip=["row:N", "column:N", alt.Tooltip("share:Q", format=".1%"), "n:Q"],
    )
    cells = base.mark_rect(stroke="white").encode(color=alt.Color("share:Q", scale=DIVERGING, legend=None))
    labels = base.mark_text(fontSize=11).encode(
        text="label:N",
        color=alt.condition("datum.share < 0.25 || datum.share > 0.75", alt.value("white"), alt.value("black")),
    )
    return alt.layer(cells, labels).properties(height=CELL * len(names) + 40)


def _label(share: float | None, n: int) -> str:
    return f"{100 * (share or 0):.0f} % of {n}"
