"""Saved filters, which are data sets that grow with the log: kept on the page Decisions, exported and dropped here."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import streamlit as st

from dashboard import acting, exports
from dashboard.data import Source
from dashboard.people import may
from dashboard.words import moment, plain
from pointsman.actions.sets import MAX_NAME, drop_set, save_set
from pointsman.queries import DecisionFilter
from pointsman.queries.sets import EXPORTED, SavedSetLine, exported, filter_json, saved_sets

MOST = 50_000
FORMATS: dict[str, tuple[Callable[..., bytes], str]] = {
    "jsonl": (exports.jsonl_bytes, "application/jsonl"),
    "parquet": (exports.parquet_bytes, "application/vnd.apache.parquet"),
    "csv": (exports.csv_bytes, "text/csv"),
}


def keep(source: Source, filters: DecisionFilter) -> None:
    """A field below a list of decisions that keeps its filter under a name."""
    project = source.project or (next(iter(source.names)) if len(source.names) == 1 else None)
    if project is None or not may(source.actor, "reviewer"):
        return
    with st.expander("Keep this filter as a data set", icon=":material/bookmark_add:"), st.form("keep", border=False):
        field, button = st.columns([4, 1], vertical_alignment="bottom")
        name = field.text_input("Name", max_chars=MAX_NAME, key="set-name").strip()
        sent = button.form_submit_button("Keep", width="stretch")
    if sent:
        now = datetime.now(UTC)
        made = acting.act(source.engine, lambda c: save_set(c, source.actor, project, name, filters, now))
        if made is not None:
            st.success(f"Kept as {plain(name)}: it is on the page Data.")


def section(source: Source, project: str) -> None:
    st.subheader("Saved filters")
    found = saved_sets(source.engine, project)
    if not found:
        st.caption("None yet: a filter of the page Decisions can be kept there.")
    else:
        st.dataframe([_row(one) for one in found], hide_index=True)
    _export(source, project, found)
    if found and may(source.actor, "operator"):
        _drop(source, project, found)


def _row(one: SavedSetLine) -> dict[str, object]:
    said = ", ".join(f"{name}: {value}" for name, value in filter_json(one.filters).items())
    return {"Name": one.name, "Filter": said, "Made by": one.made_by, "Made, UTC": moment(one.made_at)}


def _export(source: Source, project: str, found: tuple[SavedSetLine, ...]) -> None:
    everything = SavedSetLine("all", "all traffic", DecisionFilter(), "", datetime.now(UTC))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = st.selectbox(
            "Export", [everything, *found], format_func=lambda one: one.name, key="export-set", width=320
        )
        most = st.number_input("At most, rows", 1, MOST, 1_000, key="export-most", width=160)
        if chosen is None:
            return
        for form, (made, media) in FORMATS.items():
            st.download_button(
                form.upper() if form != "parquet" else "Parquet",
                lambda made=made, chosen=chosen, most=most: made(  # type: ignore[misc]
                    EXPORTED, exported(source.engine, project, chosen.filters, int(most))
                ),
                file_name=f"decisions.{form}",
                mime=media,
                key=f"export-{form}",
                on_click="ignore",
            )
    st.caption(
        "The newest rows under the filter. In CSV a cell that a spreadsheet could run as a formula begins with an "
        "apostrophe; JSONL and Parquet hold texts as they are."
    )


def _drop(source: Source, project: str, found: tuple[SavedSetLine, ...]) -> None:
    with st.form("drop", border=False):
        field, button = st.columns([4, 1], vertical_alignment="bottom")
        chosen = field.selectbox("Forget a filter", found, format_func=lambda one: one.name, key="drop-set")
        sent = button.form_submit_button("Forget", width="stretch")
    if sent and chosen is not None:
        now = datetime.now(UTC)
        if acting.did(source.engine, lambda c: drop_set(c, source.actor, project, chosen.id, now)):
            acting.say_next(f"{plain(chosen.name)} is forgotten; no decision was touched.")
