"""The calls of a decision, attempt by attempt, and what was answered."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dashboard.words import NOTHING, clipped, dollars, milliseconds

Record = dict[str, Any]


def draw(calls: list[Record]) -> None:
    if not calls:
        st.caption("No call is on record for this decision.")
        return
    st.dataframe([_row(call) for call in calls], hide_index=True, placeholder=NOTHING)
    for call in calls:
        _text(call)


def _row(call: Record) -> Record:
    return {
        "Attempt": call["attempt"],
        "Worker": call["worker"],
        "Status": call["status"],
        "HTTP": NOTHING if call["http_status"] is None else str(call["http_status"]),
        "Tokens in": call["input_tokens"],
        "Cached": call["cached_tokens"],
        "Tokens out": call["output_tokens"],
        "Cost": dollars(call["cost"]) if call["cost"] is not None else "unknown",
        "First token": milliseconds(call["first_token_ms"]),
        "Latency": milliseconds(call["latency_ms"]),
        "Finish": call["finish_reason"] or NOTHING,
        "Purpose": call["purpose"],
    }


def _text(call: Record) -> None:
    """The answer of a call, or its error."""
    if call["completion"] or call["tool_calls"] or call["reasoning"]:
        st.text(f"Answer of {call['worker']}, attempt {call['attempt']}")
    if call["reasoning"]:
        with st.expander("Reasoning"):
            st.code(clipped(call["reasoning"]), language=None, wrap_lines=True)
    if call["completion"]:
        st.code(clipped(call["completion"]), language=None, wrap_lines=True)
    if call["tool_calls"]:
        st.json(call["tool_calls"])
    if call["error"] or call["fault"]:
        st.text(f"Error of {call['worker']}, attempt {call['attempt']}")
        st.code(f"{call['fault'] or 'error'}: {call['error'] or NOTHING}", language=None, wrap_lines=True)
