"""Share and success by worker, as a picture with intervals and as numbers; feedback by metric."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard import charts
from dashboard.words import dollars, interval, milliseconds, number, percent
from pointsman.queries import MetricLine, Overview, WorkerLine


def section(shown: Overview, names: Sequence[str]) -> None:
    left, right = st.columns(2, gap="large")
    with left:
        charts.show(charts.share(shown, names), "Share of decisions by worker")
    with right:
        charts.show(charts.success(shown, names), "Success by worker with 95% Wilson intervals")
    st.dataframe(
        [
            {
                "Worker": line.worker,
                "Chosen": line.chosen,
                "Share": percent(line.share),
                "Success": percent(line.success),
                "95% interval": interval(line.success),
                "Correct": percent(line.correct),
                "Judged": line.correct.n,
                "Cost": _cost(line),
                "p50": milliseconds(line.latency.p50),
                "p95": milliseconds(line.latency.p95),
            }
            for line in shown.workers
        ],
        hide_index=True,
    )
    st.caption(
        "Success: the worker that was chosen answered with outcome ok; a fallback to another counts against it. "
        "Correct: feedback on answers this worker gave. These are shares of traffic as routed, not a fair "
        "comparison: workers get different requests."
    )


def feedback_table(lines: Sequence[MetricLine]) -> None:
    st.dataframe(
        [
            {
                "Metric": line.metric,
                "Judgements": line.n,
                "Yes": percent(line.yes),
                "95% interval": interval(line.yes),
                "Mean": number(line.mean),
            }
            for line in lines
        ],
        hide_index=True,
    )


def _cost(line: WorkerLine) -> str:
    """A worker without a price has an unknown cost, not none."""
    if not line.unknown_cost:
        return dollars(line.cost)
    known = f"{dollars(line.cost)} + " if line.cost else ""
    return f"{known}{line.unknown_cost:,} unknown"
