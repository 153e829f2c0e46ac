"""The list of decisions as a table, one of whose rows can be selected."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC

import streamlit as st

from dashboard.words import NOTHING, dollars, milliseconds, number, summary
from pointsman.queries import DecisionLine

ROW_HEIGHT = 35
MAX_HEIGHT = 640


def decisions(rows: Sequence[DecisionLine]) -> str | None:
    """Draws the table; returns the id of the row that was selected."""
    event = st.dataframe(
        [_row(line) for line in rows],
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        # The key names the page: a selection on one page is no selection on the next.
        key=f"decisions-{rows[0].id}-{rows[-1].id}",
        height=min(MAX_HEIGHT, ROW_HEIGHT * (len(rows) + 1) + 3),
        column_config={
            "Time, UTC": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm:ss", width=150),
            "Ask": st.column_config.TextColumn(width="large"),
            "Marks": st.column_config.TextColumn(width=210),
            "Id": st.column_config.TextColumn(width="medium"),
        },
        alt="Decisions, newest first",
    )
    selected = event["selection"]["rows"]
    return rows[selected[0]].id if selected and selected[0] < len(rows) else None


def marks(line: DecisionLine) -> str:
    """What set this decision apart from a plain draw."""
    parts = ["explored"] if line.explored else []
    if line.forced:
        parts.append(f"forced: {line.forced}")
    if line.answered and line.answered != line.chosen:
        parts.append(f"answered by {line.answered}")
    return ", ".join(parts)


def _row(line: DecisionLine) -> dict[str, object]:
    return {
        "Time, UTC": line.decided_at.astimezone(UTC).replace(tzinfo=None),
        "Ask": "(not stored)" if line.ask is None else " ".join(line.ask.split()),
        "Worker": line.chosen or NOTHING,
        "Propensity": number(line.propensity),
        "Marks": marks(line),
        "Outcome": line.outcome or "not ended",
        "Latency": milliseconds(line.latency_ms),
        "Cost": dollars(line.cost),
        "Router": line.router_kind or NOTHING,
        "Feedback": summary(line.feedback),
        "Id": line.id,
    }
