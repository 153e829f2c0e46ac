"""Decisions: a list to narrow down and page through, and one decision whole under its own link."""

from __future__ import annotations

import streamlit as st

from dashboard import data
from dashboard.parts import filters, record, saved_sets, table
from dashboard.parts.pager import Pager
from pointsman.ids import is_uuid
from pointsman.queries import decision_record, decisions_page, find_decision

PARAMETER = "decision"
PAGE_SIZE = 50


def page() -> None:
    filters.keep()
    source = data.source()
    wanted = st.query_params.get(PARAMETER)
    if wanted:
        _one(source, wanted)
    else:
        _list(source)


def _list(source: data.Source) -> None:
    st.title("Decisions")
    _open_by_id(source)
    pager = Pager("decisions")
    wanted = filters.form(source.workers, on_change=pager.first)
    before = pager.before
    found = decisions_page(source.engine, source.project, wanted, before=before, limit=PAGE_SIZE)
    if not found.rows:
        st.info("No decision passes these filters.")
        return
    chosen = table.decisions(found.rows)
    pager.buttons(found.older, f"{len(found.rows)} decisions, newest first. Select one to open it.")
    saved_sets.keep(source, wanted)
    if chosen is not None:
        _open(chosen)


def _one(source: data.Source, wanted: str) -> None:
    st.button("All decisions", icon=":material/arrow_back:", on_click=st.query_params.clear)
    found = decision_record(source.engine, source.project, wanted)
    if found is None:
        st.error("There is no such decision.")
        st.text(wanted[:200])
        st.write("It may be past its retention, belong to another project, or still be on its way: reload to look.")
        return
    record.draw(found, source)


def _open_by_id(source: data.Source) -> None:
    with st.form("open", border=False):
        field, button = st.columns([5, 1], vertical_alignment="bottom")
        given = field.text_input(
            "Open a decision", placeholder="id of a decision, or of a completion", key="open-id"
        ).strip()
        sent = button.form_submit_button("Open", width="stretch")
    if not sent or not given:
        return
    identity = given if is_uuid(given) else find_decision(source.engine, source.project, given)
    if identity is None:
        st.warning("No decision has this id.")
    else:
        _open(identity)


def _open(identity: str) -> None:
    st.query_params[PARAMETER] = identity
    st.rerun()
