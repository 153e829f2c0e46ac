"""One decision whole, in the order of events: the request, the choice, the calls, the end, the words on it.

What people and models wrote is shown as text only: never as Markdown, never as HTML.
"""

from __future__ import annotations

import json
from typing import Any

import streamlit as st

from dashboard import go
from dashboard.data import Source
from dashboard.parts import calls, choice, feedback, others
from dashboard.tree import dot
from dashboard.words import NOTHING, clipped, dollars, milliseconds, moment, number, plain

Record = dict[str, Any]


def draw(record: Record, source: Source) -> None:
    decision = record["decision"]
    _heading(record)
    st.graphviz_chart(dot(record), width="stretch" if record["children"] else "content", alt="The decision as a tree")
    st.subheader("Request")
    _request(record["request"])
    st.subheader("Choice")
    choice.draw(record, source.workers)
    st.subheader("Calls")
    calls.draw(record["calls"])
    _children(record["children"])
    others.draw(record, source)
    st.subheader("Feedback")
    feedback.listed(record["feedback"])
    feedback.form(record, source)
    with st.expander("Whole record, as the gateway gives it"):
        st.json(record, expanded=1)
    st.download_button(
        "Download as JSON",
        json.dumps(record, ensure_ascii=False, indent=2),
        file_name=f"decision-{decision['id']}.json",
        mime="application/json",
        on_click="ignore",
    )


def _heading(record: Record) -> None:
    decision, outcome = record["decision"], record["outcome"] or {}
    st.title("Decision")
    st.code(decision["id"], language=None)
    st.caption(
        plain(
            f"{moment(decision['decided_at'])}, origin {decision['origin']}, pattern {decision['pattern']}, "
            f"router {decision['router_kind'] or 'none'}, turn {decision['turn']}, "
            f"episode {decision['episode_id'] or 'none'}"
        )
    )
    if decision["episode_id"] and st.button("Its episode", icon=":material/forum:"):
        go.to("episodes", episode=decision["episode_id"])
    _marks(decision, outcome)
    with st.container(horizontal=True, gap="small"):
        _fact("Chosen", decision["chosen"])
        _fact("Answered by", outcome.get("worker"))
        _fact("Outcome", outcome.get("status") or "not ended")
        _fact("Propensity", number(decision["propensity"], 4))
        _fact("Latency", milliseconds(outcome.get("latency_ms")))
        _fact("Cost, USD", dollars(outcome.get("cost")) if outcome.get("cost") else "unknown")
    if outcome.get("reason"):
        st.caption("Why it ended so:")
        st.text(outcome["reason"])


def _marks(decision: Record, outcome: Record) -> None:
    with st.container(horizontal=True, gap="small"):
        if decision["explored"]:
            st.badge("explored", icon=":material/casino:", color="blue", help="Drawn by exploration.")
        if decision["forced"]:
            st.badge(
                f"forced: {plain(decision['forced'])}",
                icon=":material/lock:",
                color="gray",
                help="Chosen without a draw; never used by estimates or gates.",
            )
        if decision["audited"]:
            st.badge("audited", icon=":material/fact_check:", color="violet")
        if outcome.get("worker") and outcome["worker"] != decision["chosen"]:
            st.badge("answered by a fallback", icon=":material/alt_route:", color="orange")
        for reason in decision["fail_open"] or ():
            st.badge(f"fail-open: {plain(reason)}", icon=":material/warning:", color="orange")


def _fact(label: str, value: str | None) -> None:
    st.metric(label, value or NOTHING, border=True, width=170)


def _request(request: Record | None) -> None:
    if request is None:
        st.info("The request is not in the database: still on its way, or past its retention.")
        return
    if request["text"] is None:
        st.caption("The text was not stored: `log.store_text` is off, or redaction took it.")
    else:
        st.code(clipped(request["text"]), language=None, wrap_lines=True)
    st.caption(
        plain(
            f"model {request['model'] or 'none'}, {request['surface']}, "
            f"{'streamed' if request['stream'] else 'not streamed'}, received {moment(request['received_at'])}"
        )
    )
    if request["body"] is not None:
        with st.expander("Whole body, after redaction"):
            st.json(request["body"], expanded=2)


def _children(children: list[Record], depth: int = 0) -> None:
    """The decisions below this one, indented by their depth."""
    if children and depth == 0:
        st.subheader("Decisions below this one")
    for child in children:
        row = child["decision"]
        label = f"{row['kind']}: {row['chosen'] or NOTHING}, {moment(row['decided_at'])}"
        left, right = st.columns([5, 1], vertical_alignment="center")
        left.text(f"{'    ' * depth}{label}")
        right.button("Open", key=f"child-{row['id']}", on_click=_open, args=(row["id"],))
        _children(child["children"], depth + 1)


def _open(identity: str) -> None:
    st.query_params["decision"] = identity
