"""How a worker was chosen: scores beside probabilities, who could not be chosen and why, the cards, the reply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import streamlit as st

from dashboard.palette import GREY, OKABE_ITO
from dashboard.words import NOTHING, dollars, milliseconds, number, plain

Record = dict[str, Any]
CHOSEN_MARK = "▶ "


def draw(record: Record, workers: Sequence[str]) -> None:
    decision = record["decision"]
    rows = lines(decision, workers)
    if decision["scores"] or decision["probabilities"]:
        left, right = st.columns(2, gap="large")
        with left:
            _bars(rows, "score", "score, longer is better", "Scores by worker")
        with right:
            _bars(rows, "probability", "probability", "Probabilities by worker")
    st.dataframe([_shown(row) for row in rows], hide_index=True)
    st.caption(explanation(decision))
    _cards(record["cards"])
    _reply(decision, record["router_version"])


def lines(decision: Record, workers: Sequence[str]) -> list[Record]:
    """One row per worker that the decision knew: those that could be chosen first, in the pool's order."""
    eligible: dict[str, str | None] = decision["eligible"]
    scores, probabilities = decision["scores"] or {}, decision["probabilities"] or {}
    order = {name: position for position, name in enumerate(workers)}
    names = sorted(eligible, key=lambda name: (eligible[name] is not None, order.get(name, len(order)), name))
    return [
        {
            "worker": name,
            "chosen": name == decision["chosen"],
            "why_not": eligible[name],
            "score": scores.get(name),
            "probability": probabilities.get(name),
        }
        for name in names
    ]


def explanation(decision: Record) -> str:
    """One sentence on how the choice came about."""
    if decision["chosen"] is None:
        return "Nobody was chosen: every eligible worker was called."
    if decision["forced"]:
        reasons = {
            "sticky": "the worker stays within a tool loop",
            "direct": "the client named the worker",
            "only_one": "only one worker was eligible",
            "fallback": "another worker stood in",
        }
        return f"Forced: {reasons.get(decision['forced'], plain(decision['forced']))}. There was no draw."
    drawn = "by exploration" if decision["explored"] else "from the probabilities"
    draw = ", ".join(number(value, 4) for value in decision["draw"] or ())
    return f"Drawn {drawn}, with propensity {number(decision['propensity'], 4)}" + (f" (draw {draw})." if draw else ".")


def _bars(rows: list[Record], field: str, title: str, description: str) -> None:
    values = [
        {
            "worker": f"{CHOSEN_MARK if row['chosen'] else ''}{row['worker']}",
            "value": row[field],
            "chosen": "chosen" if row["chosen"] else "not chosen",
        }
        for row in rows
        if row[field] is not None
    ]
    if not values:
        st.caption(f"No {field} was logged.")
        return
    # Log probabilities are below 0: their bars start left of the lowest, or the worst would be the longest.
    lowest = min(value["value"] for value in values)
    start = 0.0 if lowest >= 0 else 1.1 * lowest
    base = alt.Chart(alt.InlineData(values=values)).encode(
        y=alt.Y("worker:N", title=None, sort=[value["worker"] for value in values], axis=alt.Axis(labelLimit=160)),
        x=alt.X("value:Q", title=title, axis=alt.Axis(tickCount=5), scale=alt.Scale(zero=start == 0)),
        x2=alt.datum(start),
    )
    bars = base.mark_bar(cornerRadiusEnd=2).encode(
        color=alt.Color(
            "chosen:N",
            scale=alt.Scale(domain=["chosen", "not chosen"], range=[OKABE_ITO[0], GREY]),
            legend=None,
        ),
        tooltip=["worker:N", alt.Tooltip("value:Q", format=".4f"), "chosen:N"],
    )
    st.altair_chart(bars.properties(height=34 * len(values) + 80), alt=description)


def _shown(row: Record) -> Record:
    return {
        "Worker": row["worker"],
        "Chosen": "▶ chosen" if row["chosen"] else "",
        "Eligible": "yes" if row["why_not"] is None else f"no: {row['why_not']}",
        "Score": number(row["score"]),
        "Probability": number(row["probability"], 4),
    }


def _cards(cards: dict[str, str]) -> None:
    if not cards:
        return
    with st.expander(f"Cards as seen ({len(cards)})", icon=":material/badge:"):
        for worker, card in cards.items():
            st.text(worker)
            st.code(card, language=None, wrap_lines=True)


def _reply(decision: Record, version: Record | None) -> None:
    with st.expander("Router's reply", icon=":material/quick_reference:", expanded=True):
        if decision["raw_reply"] is None:
            st.caption("This router gave no reply to parse.")
        else:
            st.code(decision["raw_reply"], language=None, wrap_lines=True)
        facts = {
            "parse status": decision["parse_status"] or NOTHING,
            "router version": f"{version['kind']}, {version['state']}" if version else NOTHING,
            "artifact": version["artifact_hash"][:12] if version else NOTHING,
            "tokens in, out": f"{_count(decision['router_input_tokens'])}, {_count(decision['router_output_tokens'])}",
            "cost": dollars(decision["router_cost"]),
            "time": milliseconds(decision["router_ms"]),
        }
        st.text("\n".join(f"{name}: {value}" for name, value in facts.items()))


def _count(value: int | None) -> str:
    return NOTHING if value is None else f"{value:,}"
