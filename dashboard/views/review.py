"""The review queue: what is worth a look, one item at a time, verdicts that become feedback, and how people agree."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

import streamlit as st

from dashboard import acting, data
from dashboard.parts import review_given, review_item, review_queues
from dashboard.people import may, session
from pointsman.actions.review import open_item, release, take_next
from pointsman.words import ReviewRule, members

ITEM = "item"
ANY = "any queue"
SKIPPED = "review-skipped"


def page() -> None:
    source = data.source()
    st.title("Review queue")
    acting.said()
    project = source.one
    if not may(source.actor, "reviewer"):
        st.caption(f"Reviewing needs the role reviewer; yours is {source.actor.role}. What was found is below.")
        review_queues.table(source, project)
        review_given.listed(source, project)
        return
    wanted = st.query_params.get(ITEM)
    if wanted:
        _judge(source, project, wanted)
    else:
        _choose(source, project)
    review_queues.table(source, project)
    review_queues.fill(source, project)
    review_queues.assignments(source, project)
    review_given.listed(source, project)


def _choose(source: data.Source, project: str) -> None:
    queue, button = st.columns([3, 1], vertical_alignment="bottom")
    chosen = queue.selectbox("Queue", [ANY, *members(ReviewRule)], key="review-rule", format_func=review_queues.words)
    if button.button("Next item", type="primary", icon=":material/skip_next:", shortcut="n", width="stretch"):
        _take(source, project, None if chosen == ANY else cast(ReviewRule, chosen))


def _take(source: data.Source, project: str, rule: ReviewRule | None) -> None:
    skipped = st.session_state.get(SKIPPED, [])
    now, token = datetime.now(UTC), session()
    found = acting.act(source.engine, lambda c: (take_next(c, source.actor, project, rule, token, now, skipped), True))
    if found is None:
        return
    if found[0] is None:
        st.info("Nothing waits here that you have not judged or put aside, and that nobody else has open.")
        st.session_state[SKIPPED] = []
        return
    st.query_params[ITEM] = str(found[0].id)
    st.rerun()


def _judge(source: data.Source, project: str, wanted: str) -> None:
    now, token = datetime.now(UTC), session()
    held = acting.act(source.engine, lambda c: open_item(c, source.actor, project, wanted, token, now))
    if held is None:
        st.button("Back to the queue", icon=":material/arrow_back:", on_click=st.query_params.clear)
        return
    review_item.draw(source, project, held)
    if st.button("Put aside", icon=":material/skip_next:", shortcut="s", help="Key s. It stays in the queue."):
        acting.act(source.engine, lambda c: release(c, project, wanted, token))
        st.session_state.setdefault(SKIPPED, []).append(wanted)
        st.query_params.clear()
        _take(source, project, None)
        st.rerun()
