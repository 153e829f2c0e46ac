"""One router version: its lineage, how it differs from its parent, and what can be done with it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import streamlit as st

from dashboard import acting
from dashboard.data import Source
from dashboard.gateway import readiness
from dashboard.parts.cards import difference
from dashboard.people import may
from dashboard.words import moment, plain
from pointsman.actions.gates import start_gate
from pointsman.actions.routers import promote, shadow
from pointsman.promotion.certify import proof_of
from pointsman.queries.routers import VersionLine

LONGEST = 2_000  # characters of a value that a difference shows
NONE = "the rest of the file's chain"


def draw(source: Source, project: str, one: VersionLine, found: Sequence[VersionLine], serves: str | None) -> None:
    with st.container(border=True):
        st.markdown(f"**Version {plain(one.id[:8])}**, {plain(one.kind)}, {plain(one.state)}, {moment(one.created_at)}")
        st.code(one.id, language=None)
        known = {each.id: each for each in found}
        st.caption(plain("Lineage: " + " ← ".join(f"{each[:8]}" for each in lineage(one.id, known))))
        _difference(one, known.get(one.parent_id or ""))
        with st.expander("Configuration"):
            st.json(dict(one.config), expanded=1)
        if may(source.actor, "operator") and one.id != serves:
            _act(source, project, one, found, serves)


def lineage(identity: str, known: Mapping[str, VersionLine]) -> list[str]:
    """The version, its parent, and so on."""
    chain: list[str] = []
    at: str | None = identity
    while at is not None and at not in chain:
        chain.append(at)
        at = known[at].parent_id if at in known else None
    return chain


def _difference(one: VersionLine, parent: VersionLine | None) -> None:
    if parent is None:
        return
    changed = changes(parent.config, one.config)
    with st.expander(f"What differs from its parent ({len(changed)})", icon=":material/difference:"):
        for path, old, new in changed:
            st.text(path)
            lines = difference(_text(old), _text(new))
            st.code("\n".join(lines), language="diff", wrap_lines=True)


def changes(old: Mapping[str, Any], new: Mapping[str, Any], path: str = "") -> list[tuple[str, Any, Any]]:
    """What is not alike, by its path; None where a side has nothing there."""
    found: list[tuple[str, Any, Any]] = []
    for key in sorted({*old, *new}):
        before, after = old.get(key), new.get(key)
        here = f"{path}.{key}" if path else key
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            found += changes(before, after, here)
        elif before != after:
            found.append((here, before, after))
    return found


def _text(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
    return text[:LONGEST]


def _act(source: Source, project: str, one: VersionLine, found: Sequence[VersionLine], serves: str | None) -> None:
    with source.engine.connect() as connection:
        proof = proof_of(connection, project, one.id)
    with st.form(f"promote-{one.id}", border=False):
        reason = st.text_input("Why", max_chars=500, key="promote-reason").strip()
        others = [each.id for each in found if each.id != one.id]
        fallback = st.selectbox(
            "Where it cannot decide", [NONE, *others], key="promote-fallback", format_func=lambda name: name[:28]
        )
        certified = proof is not None
        without = st.checkbox("Promote without a certificate", key="promote-uncertified", disabled=certified)
        st.caption(
            "A certificate says that it is better than what serves."
            if certified
            else "No certificate says that it is better than what serves: a gate gathers one."
        )
        left, middle, right = st.columns(3)
        to_promote = left.form_submit_button("Promote", type="primary", width="stretch")
        to_gate = middle.form_submit_button("Start a gate", width="stretch")
        on = one.state != "shadow"
        to_shadow = right.form_submit_button(
            "Let it watch" if on else "No longer watch",
            width="stretch",
            disabled=one.state not in ("candidate", "shadow"),
        )
    now = datetime.now(UTC)
    if to_promote and not reason:
        st.warning("Say why: the reason stands with the record.")
    elif to_promote:
        cards = (readiness(source.gateway) or {}).get("cards")
        made = acting.act(
            source.engine,
            lambda c: promote(
                c, source.actor, project, one.id, now, reason=reason,
                fallback=None if fallback == NONE else fallback, uncertified=bool(without),
                cards_hash=cards if isinstance(cards, str) else None, serving=serves,
            ),
        )  # fmt: skip
        if made is not None:
            acting.say_next(f"{plain(one.id[:8])} serves from now on.")
    elif to_gate:
        gate = acting.act(
            source.engine,
            lambda c: start_gate(
                c, source.actor, project, one.id, source.config, now, serving=serves, reason=reason or None
            ),
        )
        if gate is not None:
            acting.say_next(f"Gate {plain(gate[-8:])} is registered: its terms do not change any more.")
    elif to_shadow:
        done = acting.act(source.engine, lambda c: shadow(c, source.actor, project, one.id, now, on=on))
        if done is not None:
            acting.say_next("It chooses beside what serves, without effect." if on else "It watches no longer.")
