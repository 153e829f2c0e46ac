"""The queues by their rules: how full, what was found in them, filling them, and who is to look at what."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import cast

import streamlit as st

from dashboard import acting
from dashboard.data import Source
from dashboard.words import NOTHING, interval, moment, number, percent, plain
from pointsman.actions.review import add_items, assign
from pointsman.queries.reviews import open_items, queues
from pointsman.queries.worth import worth_reviewing
from pointsman.words import ReviewRule, members

MEANING = {
    "disagreement": "a router that only watched chose another worker",
    "low_confidence": "the probabilities were nearly even",
    "bad_outcome": "it failed, or somebody said it was not correct",
    "reask": "the same was asked again in the conversation",
    "random": "a random audit, which the others are measured against",
}
DAYS = 30


def words(rule: str) -> str:
    """A rule's name with what it means."""
    return f"{rule.replace('_', ' ')}: {MEANING[rule]}" if rule in MEANING else rule


def table(source: Source, project: str) -> None:
    st.subheader("Queues")
    st.dataframe(
        [
            {
                "Queue": line.rule.replace("_", " "),
                "Open": line.open,
                "Done": line.done,
                "Found wanting": percent(line.found),
                "95% interval": interval(line.found),
                "Verdicts": line.found.n,
                "Lift over random": NOTHING if line.lift is None else f"× {number(line.lift, 2)}",
            }
            for line in queues(source.engine, project)
        ],
        hide_index=True,
    )
    st.caption("Found wanting: verdicts other than good fit. Lift: that share over the random queue's, as measured.")


def fill(source: Source, project: str) -> None:
    with st.expander("Fill a queue", icon=":material/playlist_add:"), st.form("fill", border=False):
        rule = cast(ReviewRule | None, st.selectbox("Rule", members(ReviewRule), format_func=words, key="fill-rule"))
        left, middle, right = st.columns(3)
        most = left.number_input("At most, items", 1, 1000, 50, key="fill-most")
        wanted = middle.number_input("Reviewers for each", 1, 5, 1, key="fill-wanted")
        days = right.number_input("Of the last days", 1, 3650, DAYS, key="fill-days")
        sent = st.form_submit_button("Fill", type="primary")
    if sent and rule is not None:
        now = datetime.now(UTC)
        found = worth_reviewing(source.engine, project, rule, now - timedelta(days=days), most, seed=now.toordinal())
        made = acting.act(
            source.engine, lambda c: add_items(c, source.actor, project, rule, found, now, wanted=int(wanted))
        )
        if made is not None:
            acting.say_next(f"{made:,} new items in the queue {plain(rule)}.")


def assignments(source: Source, project: str) -> None:
    waiting = open_items(source.engine, project)
    if not waiting:
        return
    with st.expander("Open items, and who is to look at them", icon=":material/assignment_ind:"):
        st.dataframe(
            [
                {
                    "Queue": row.rule,
                    "Information": number(row.information),
                    "Reviewers": row.wanted,
                    "For": row.assigned_to or "anybody",
                    "Open by": f"{row.locked_by} until {moment(row.locked_until)}" if _held(row) else "",
                    "Item": str(row.id),
                }
                for row in waiting
            ],
            hide_index=True,
        )
        with st.form("assign", border=False):
            left, middle, right = st.columns([3, 2, 1], vertical_alignment="bottom")
            item = left.selectbox("Item", [str(row.id) for row in waiting], key="assign-item")
            to = middle.text_input("For (empty: anybody)", max_chars=100, key="assign-to").strip()
            sent = right.form_submit_button("Assign", width="stretch")
        if sent and item is not None:
            now = datetime.now(UTC)
            if acting.did(source.engine, lambda c: assign(c, source.actor, project, item, to or None, now)):
                acting.say_next(f"The item is for {plain(to) if to else 'anybody'} now.")


def _held(row: object) -> bool:
    until = getattr(row, "locked_until", None)
    return until is not None and until > datetime.now(UTC)
