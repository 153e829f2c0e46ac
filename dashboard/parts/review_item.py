"""One item to judge: the request and its answer, and a verdict by button or key."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import streamlit as st

from dashboard import acting
from dashboard.data import Source
from dashboard.parts.review_given import forward
from dashboard.people import session
from dashboard.words import NOTHING, clipped, dollars, milliseconds, moment, number, plain
from pointsman.actions.review import HOLD, MAX_TEXT, Judgement, give_verdict
from pointsman.queries import decision_record
from pointsman.words import ReviewVerdict

Record = dict[str, Any]
NOBODY = "nobody"
VERDICTS: dict[ReviewVerdict, tuple[str, str, str]] = {
    "good_fit": ("Good fit", "1", "The right worker for this, and a good answer."),
    "underpowered": ("Underpowered", "2", "A stronger worker was needed."),
    "overprovisioned": ("Overprovisioned", "3", "A good answer that a cheaper worker would have given too."),
    "failed": ("Failed", "4", "The answer is no use."),
}


def draw(source: Source, project: str, item: Any) -> None:
    identity = str(item.id)
    blind = st.toggle("Blind: hide who answered", value=True, key="review-blind")
    st.caption(
        plain(
            f"From the queue {item.rule.replace('_', ' ')}, information {item.information:.2f}, "
            f"{item.wanted} reviewer{'s' if item.wanted > 1 else ''}; yours until {moment(item.locked_until)}"
        )
    )
    record = decision_record(source.engine, project, str(item.decision_id))
    if record is None:
        st.warning("The decision is past its retention: put the item aside.")
        return
    _shown(record, blind=bool(blind))
    _verdict(source, project, identity, record, blind=bool(blind))


def _shown(record: Record, *, blind: bool) -> None:
    ask = (record["request"] or {}).get("text")
    with st.chat_message("user"):
        st.text(clipped(ask) if ask is not None else "(not stored)")
    with st.chat_message("assistant"):
        st.text(clipped(answer(record) or "") or "(no answer is stored)")
    outcome = record["outcome"] or {}
    st.caption(plain(f"Outcome: {outcome.get('status') or 'not ended'}. {outcome.get('reason') or ''}"))
    if blind:
        return
    decision = record["decision"]
    cost = outcome.get("cost")
    st.caption(
        plain(
            f"Chosen {decision['chosen']} with p = {number(decision['propensity'])}, answered by "
            f"{outcome.get('worker') or NOTHING}, {milliseconds(outcome.get('latency_ms'))}, "
            f"{'cost unknown' if cost is None else dollars(cost)}"
        )
    )


def answer(record: Record) -> str | None:
    """Of the last call that went well."""
    good = [call["completion"] for call in record["calls"] if call["status"] == "ok" and call["completion"]]
    return str(good[-1]) if good else None


def _verdict(source: Source, project: str, item: str, record: Record, *, blind: bool) -> None:
    answered = (record["outcome"] or {}).get("worker") or record["decision"]["chosen"]
    offered = [name for name in record["decision"]["eligible"] if blind or name != answered]
    better = st.selectbox("A better worker", [NOBODY, *offered], key=f"better-{item}")
    with st.expander("A better answer, a comment"):
        text = st.text_area("Better answer", max_chars=MAX_TEXT, key=f"answer-{item}").strip()
        comment = st.text_area("Comment", max_chars=MAX_TEXT, height=80, key=f"comment-{item}").strip()
    said: ReviewVerdict | None = None
    with st.container(horizontal=True):
        for verdict, (label, key, meaning) in VERDICTS.items():
            if st.button(label, key=f"verdict-{verdict}", shortcut=key, help=f"Key {key}. {meaning}"):
                said = verdict
    st.caption(f"Keys 1 to 4 judge, s puts aside, n takes the next. Held for {HOLD.seconds // 60} minutes.")
    if said is not None:
        chosen = None if better in (NOBODY, answered) else better
        _give(source, project, item, Judgement(said, chosen, text or None, comment or None, blind))


def _give(source: Source, project: str, item: str, said: Judgement) -> None:
    now, token = datetime.now(UTC), session()
    row = acting.act(source.engine, lambda c: give_verdict(c, source.actor, project, item, said, token, now))
    if row is None:
        return
    sent = forward(source, project, row)
    st.query_params.clear()
    label = VERDICTS[said.verdict][0].lower()
    acting.say_next(f"Verdict kept: {label}. {sent}")
