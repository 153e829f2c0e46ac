"""A worker's card: as it is now, as it was, what changed between, and a new one that becomes a candidate."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from datetime import UTC, datetime

import streamlit as st
from sqlalchemy.exc import OperationalError

from dashboard import acting
from dashboard.data import Source
from dashboard.people import may
from dashboard.words import moment, plain
from pointsman.actions.cards import MAX_CHARS, draft_card
from pointsman.errors import UserError
from pointsman.promotion.serving import incumbent
from pointsman.promotion.versions import find_version
from pointsman.queries.workers import CardLine, card_history


def draw(source: Source, worker: str) -> None:
    history = card_history(source.engine, worker)
    declared = next((one.description for one in source.config.workers if one.name == worker), None)
    st.markdown("**Card**, by which routers know the worker")
    if declared is not None:
        st.caption("As `pointsman.toml` has it:")
        st.code(declared, language=None, wrap_lines=True)
    _history(history)
    _edit(source, worker, declared)


def _history(history: Sequence[CardLine]) -> None:
    if not history:
        st.caption("No card of this worker is on record yet.")
        return
    st.dataframe(
        [
            {"Since": moment(card.created_at), "Made by": card.source, "Characters": len(card.text),
             "Version": card.hash[:12], "Text": card.text}
            for card in history
        ],
        hide_index=True,
    )  # fmt: skip
    if len(history) < 2:
        return
    with st.expander("What changed", icon=":material/difference:"):
        before, after = st.columns(2)
        old = before.selectbox("From", history, index=1, format_func=_name, key="card-from")
        new = after.selectbox("To", history, index=0, format_func=_name, key="card-to")
        if old is not None and new is not None:
            lines = difference(old.text, new.text)
            st.code("\n".join(lines) or "They are the same.", language="diff", wrap_lines=True)


def difference(old: str, new: str) -> list[str]:
    """Changed sentences, `-` before and `+` after; what stayed has a space."""
    before, after = sentences(old), sentences(new)
    if before == after:
        return []
    return [line for line in difflib.ndiff(before, after) if not line.startswith("?")]


def sentences(card: str) -> list[str]:
    """A card line by line, and long lines by sentence, so that a difference is one of words and not of the whole."""
    return [
        part.strip() for line in card.splitlines() for part in line.replace(". ", ".\n").split("\n") if part.strip()
    ]


def _name(card: CardLine) -> str:
    return f"{moment(card.created_at)}, {card.source}, {card.hash[:8]}"


def _edit(source: Source, worker: str, declared: str | None) -> None:
    with st.expander("Write a new card", icon=":material/edit:"):
        if not may(source.actor, "operator"):
            st.caption(f"Editing a card needs the role operator; yours is {source.actor.role}.")
            return
        project = source.one
        serving = _serving(source, project, worker, declared or "")
        st.caption(
            "It becomes a candidate: the router that serves, with this one card changed. It serves nothing until it "
            "passes a gate or is promoted, on the page Routers."
        )
        with st.form(f"card-{worker}", border=False):
            text = st.text_area("Card", value=serving, max_chars=MAX_CHARS, height=160, key=f"card-text-{worker}")
            reason = st.text_input("Why", key=f"card-reason-{worker}", max_chars=500).strip()
            sent = st.form_submit_button("Make a candidate", type="primary")
    if sent:
        made = acting.act(
            source.engine,
            lambda connection: draft_card(
                connection, source.actor, project, worker, text, datetime.now(UTC), reason=reason or None
            ),
        )
        if made is not None:
            acting.say_next(f"Candidate {plain(made.id)} has the new card. It is on the page Routers.")


def _serving(source: Source, project: str, worker: str, otherwise: str) -> str:
    """The card with which the serving version knows the worker; `otherwise` where that is not known."""
    try:
        with source.engine.connect() as connection:
            version = find_version(connection, incumbent(connection, project))
    except (UserError, OperationalError):
        return otherwise
    return str(version.config.get("cards", {}).get(worker, otherwise))
