"""Verdicts that were given: where each went, taking one back, and how far reviewers agree."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import streamlit as st

from dashboard import acting, go
from dashboard.data import Source
from dashboard.gateway import read_key, send_feedback
from dashboard.people import may
from dashboard.words import NOTHING, moment, number
from pointsman.actions.review import feedback_of, given_as_feedback, undo_verdict
from pointsman.queries.reviews import VerdictLine, agreement, trail, verdict_row, verdicts

SHOWN = 50


def forward(source: Source, project: str, row: Any) -> str:
    """Gives a verdict to the gateway as feedback and notes its id; what came of it, in a sentence."""
    reply = send_feedback(source.gateway, feedback_of(row), read_key(source.settings.home))
    if not reply.accepted:
        why = "does not answer" if reply.status is None else f"refused it with status {reply.status}"
        return f"The gateway {why}: it is no feedback yet, and can be sent again below."
    feedback = str(json.loads(reply.text)["id"])
    acting.act(source.engine, lambda c: given_as_feedback(c, project, str(row.id), feedback))
    return "It is feedback now."


def listed(source: Source, project: str) -> None:
    st.subheader("Verdicts")
    found = verdicts(source.engine, project, limit=SHOWN)
    if not found:
        st.caption("None yet.")
        return
    agreed = agreement(source.engine, project)
    st.metric(
        "Agreement, Krippendorff's α", number(agreed.alpha), f"n = {agreed.units:,} items with two words or more",
        delta_color="off", delta_arrow="off", border=True, width=340, help="1: always agree; 0: as chance would.",
    )  # fmt: skip
    event = st.dataframe(
        [_row(line) for line in found],
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        key=f"verdicts-{found[0].id}-{len(found)}",
    )
    selected = event["selection"]["rows"]
    mine = next((line for line in found if line.reviewer == source.actor.name and line.undone_at is None), None)
    with st.container(horizontal=True):
        if mine is not None and st.button("Undo my last verdict", icon=":material/undo:", shortcut="u", help="Key u."):
            _undo(source, project, mine)
        unsent = [line for line in found if line.feedback_id is None and line.undone_at is None]
        if unsent and may(source.actor, "reviewer") and st.button(f"Send {len(unsent)} again", icon=":material/send:"):
            _again(source, project, unsent)
    if selected and selected[0] < len(found):
        _where(source, project, found[selected[0]])


def _row(line: VerdictLine) -> dict[str, object]:
    stands = "taken back" if line.undone_at else "feedback" if line.feedback_id else "not sent yet"
    return {
        "Given, UTC": moment(line.given_at).removesuffix(" UTC"),
        "Reviewer": line.reviewer,
        "Verdict": line.verdict.replace("_", " "),
        "Better worker": line.better_worker or "",
        "Comment": line.comment or "",
        "Queue": line.rule.replace("_", " "),
        "State": stands,
        "Decision": line.decision_id,
    }


def _where(source: Source, project: str, line: VerdictLine) -> None:
    """A verdict's way: feedback, label sets made since, routers trained on those."""
    st.markdown("**Where it went**")
    steps = [f"feedback {line.feedback_id or NOTHING}"]
    sets = trail(source.engine, project, line.given_at) if line.feedback_id else ()
    steps += [f"label set {one.hash[:12]}, {one.rows:,} rows, {moment(one.made_at)}" for one in sets]
    steps += [f"router {router}" for one in sets for router in one.routers]
    if line.feedback_id and not sets:
        steps.append("no label set has been made since: start a `labels` job")
    st.text("\n".join(steps))
    if st.button("Open the decision", key=f"open-{line.id}"):
        go.to("decisions", decision=line.decision_id)


def _undo(source: Source, project: str, line: VerdictLine) -> None:
    now = datetime.now(UTC)
    row = acting.act(source.engine, lambda c: undo_verdict(c, source.actor, project, line.id, now))
    if row is None:
        return
    if row.feedback_id is None:
        acting.say_next("Taken back; the item is open again.")
    body = {
        "decision_id": str(row.decision_id), "metric": "correct", "amends": str(row.feedback_id), "retract": True,
        "source": "review", "rater": row.reviewer[:200], "idempotency_key": f"undo {row.id}",
    }  # fmt: skip
    reply = send_feedback(source.gateway, body, read_key(source.settings.home))
    told = "its feedback too" if reply.accepted else "but the gateway did not take its feedback back"
    acting.say_next(f"Taken back, {told}; the item is open again.")


def _again(source: Source, project: str, lines: list[VerdictLine]) -> None:
    said = [forward(source, project, verdict_row(source.engine, project, line.id)) for line in lines]
    acting.say_next(f"{sum(one.startswith('It is') for one in said)} of {len(said)} are feedback now.")
