"""What is wrong now: alarms that are on, workers that the breaker keeps out, the journal, budgets nearly spent."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dashboard.data import Source
from dashboard.gateway import readiness
from dashboard.parts import alarms
from dashboard.shared import shared
from dashboard.words import dollars, percent, plain
from pointsman.queries.spending import BudgetLine, budgets

NEARLY = 0.8
"""The share of a budget from which it is named, and of the journal's limit."""
FRESH = 5.0  # seconds


def section(source: Source) -> None:
    st.subheader("Alarms")
    told = shared().get(("readiness", source.gateway), lambda: readiness(source.gateway), FRESH)
    if told is None:
        st.caption("The gateway does not answer here: of breaker and journal nothing is known.")
    for line in gateway_lines(told or {}):
        st.warning(line, icon=":material/warning:")
    for budget in budgets(source.engine, source.project):
        if (spent := budget_line(budget)) is not None:
            st.warning(spent, icon=":material/payments:")
    alarms.listed(source)


def gateway_lines(told: dict[str, Any]) -> list[str]:
    """What `/readyz` says that a person should know, in sentences."""
    lines = [
        f"{plain(str(worker))}: the breaker keeps it out after failures; it is tried again by itself."
        for worker, state in (told.get("workers") or {}).items()
        if state != "ok"
    ]
    if told.get("database") == "away":
        lines.append("The gateway does not reach the database: its journal grows.")
    journal = told.get("journal") or {}
    waiting, limit = journal.get("waiting_bytes") or 0, journal.get("limit_bytes") or 0
    if limit and waiting / limit >= NEARLY:
        lines.append(
            f"Journal: {journal.get('waiting_lines', 0):,} lines wait, {percent(waiting / limit)} of its limit. "
            "At its limit new requests get 503."
        )
    if journal.get("rows_lost"):
        lines.append(f"Journal: {journal['rows_lost']:,} rows were lost.")
    return lines


def budget_line(budget: BudgetLine) -> str | None:
    """None while there is enough left."""
    if budget.share < NEARLY:
        return None
    of = f"key {plain(budget.prefix)}" if budget.prefix else "the project"
    return (
        f"Budget of {of} in {plain(budget.project)}: {dollars(budget.spent)} of {dollars(budget.limit)} spent "
        f"this {budget.period} ({percent(budget.share)})."
    ).replace("$", "\\$")
