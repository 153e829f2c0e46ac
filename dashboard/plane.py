"""The cost-quality plane: workers and the oracle as circles, routers as crosses by their own traffic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt

from dashboard.charts import Chart
from dashboard.palette import GREY, OKABE_ITO
from pointsman.queries.routers import PlanePoint, VersionRecord

SHAPES = ["circle", "diamond", "cross"]
WHAT = {"worker": OKABE_ITO[0], "oracle": OKABE_ITO[2], "router, by its traffic": OKABE_ITO[5]}


def picture(points: Sequence[PlanePoint], records: Mapping[str, VersionRecord], names: Mapping[str, str]) -> Chart:
    """USD per request to the right, mean score upwards; what has no known cost is left out."""
    rows = [
        {"name": one.name, "what": "oracle" if one.name == "oracle" else "worker", "cost": one.cost,
         "score": one.score, "n": one.n}
        for one in points
        if one.cost is not None
    ]  # fmt: skip
    rows += [
        {"name": names[identity], "what": "router, by its traffic", "cost": one.cost, "score": one.reward,
         "n": one.rewarded}
        for identity, one in records.items()
        if identity in names and one.reward is not None and one.cost is not None
    ]  # fmt: skip
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("cost:Q", title="USD per request", axis=alt.Axis(tickCount=5, format="$.3~g")),
        y=alt.Y("score:Q", title="mean score or reward", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5)),
    )
    marks = base.mark_point(filled=True, size=130, opacity=1).encode(
        color=alt.Color(
            "what:N", scale=alt.Scale(domain=list(WHAT), range=list(WHAT.values())),
            legend=alt.Legend(orient="top", title=None),
        ),
        shape=alt.Shape("what:N", scale=alt.Scale(domain=list(WHAT), range=SHAPES), legend=None),
        tooltip=["name:N", alt.Tooltip("cost:Q", format="$.6~g"), alt.Tooltip("score:Q", format=".3f"), "n:Q"],
    )  # fmt: skip
    labels = base.mark_text(align="left", dx=9, dy=-7, color=GREY).encode(text="name:N")
    return alt.layer(marks, labels).properties(height=320)
