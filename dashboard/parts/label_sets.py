"""Label sets: what routers are trained on, each with its data report."""

from __future__ import annotations

import streamlit as st

from dashboard.data import Source
from dashboard.words import moment
from pointsman.queries.sets import label_sets

REPORT = "report"


def section(source: Source, project: str) -> None:
    st.subheader("Label sets")
    found = label_sets(source.engine, project)
    if not found:
        st.caption("None yet: a `labels` job makes one of the log, on the page Jobs.")
        return
    st.dataframe(
        [
            {"Made, UTC": moment(one.made_at).removesuffix(" UTC"), "Rows": one.rows,
             "Hash": one.hash[:12], "Id": one.id}
            for one in found
        ],
        hide_index=True,
    )  # fmt: skip
    chosen = st.selectbox(
        "Data report of", found, key="label-set", format_func=lambda one: f"{moment(one.made_at)}, {one.rows:,} rows"
    )
    if chosen is not None:
        st.json(dict(chosen.manifest.get(REPORT) or chosen.manifest), expanded=1)
