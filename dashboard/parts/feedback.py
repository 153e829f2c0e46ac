"""Words on a decision: those given so far, and a form for one more, which the gateway takes like anybody's."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dashboard.data import Source
from dashboard.gateway import Reply, read_key, send_feedback
from dashboard.words import moment, said

Record = dict[str, Any]
METRICS = {"correct": ("yes", "no"), "thumbs": ("up", "down")}
NOBODY = "nobody"
LAST_REPLY = "feedback_reply"


def listed(rows: list[Record]) -> None:
    if not rows:
        st.caption("None yet.")
        return
    replaced = {row["amends"] for row in rows if row["amends"]}
    st.dataframe(
        [
            {
                "Time": moment(row["created_at"]),
                "Metric": row["metric"],
                "Value": "" if row["retracted"] else said(row["value"]),
                "Stands": standing(row, replaced),
                "About": "decision" if row["decision_id"] else "episode",
                "Source": row["source"],
                "Rater": row["rater"] or "",
                "Better worker": row["better_worker"] or "",
                "Comment": row["comment"] or "",
            }
            for row in rows
        ],
        hide_index=True,
    )


def standing(row: Record, replaced: set[str]) -> str:
    """Whether a word still counts, and if not, why."""
    if row["retracted"]:
        return "no: a retraction"
    return "no: replaced by a later one" if row["id"] in replaced else "yes"


def form(record: Record, source: Source) -> None:
    decision, outcome = record["decision"], record["outcome"] or {}
    identity = decision["id"]
    answered = outcome.get("worker") or decision["chosen"]
    others = [name for name in decision["eligible"] if name != answered]
    with st.form("feedback"):
        first, second, third = st.columns(3)
        metric = first.selectbox("Metric", list(METRICS), key="feedback-metric")
        good = second.radio("Verdict", ["good", "bad"], horizontal=True, format_func=_verdict, key="feedback-verdict")
        better = third.selectbox("A better worker", [NOBODY, *others], key="feedback-better")
        comment = st.text_area("Comment", max_chars=4000, height=80, key="feedback-comment").strip()
        sent = st.form_submit_button("Give feedback", type="primary")
    if sent:
        body = {"decision_id": identity, "metric": metric, "value": good == "good", "source": "person"}
        if comment:
            body["comment"] = comment
        if better != NOBODY:
            body["better_worker"] = better
        key = read_key(source.settings.home)
        _answer(send_feedback(source.gateway, body, key))


def _verdict(choice: str) -> str:
    return {"good": "yes / up", "bad": "no / down"}[choice]


def _answer(reply: Reply) -> None:
    if reply.accepted:
        st.success("Thank you: the gateway has it. It is in the list within a second or two: reload to see it.")
    elif reply.status is None:
        st.error("The gateway does not answer, so the feedback was not given. Start it with `pointsman up`.")
    else:
        st.error(f"The gateway refused the feedback with status {reply.status}.")
    if reply.text:
        st.code(reply.text, language=None, wrap_lines=True)
