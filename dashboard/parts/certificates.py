"""Certificates: what each claims with which error, by which method, from which data, and whether it still holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from dashboard.words import moment

Row = Mapping[str, Any]


def table(found: Sequence[Row]) -> None:
    st.subheader("Certificates")
    if not found:
        st.caption("None yet: a gate that passes makes one, and so does a search on its certification set.")
        return
    st.dataframe([_row(row) for row in found], hide_index=True)
    chosen = st.selectbox(
        "Certificate", found, key="certificate", format_func=lambda row: f"{row['claim']}, {str(row['id'])[-8:]}"
    )
    if chosen is None:
        return
    st.text(f"Method: {chosen['method']}")
    st.text("Assumes:\n" + "\n".join(f"  {line}" for line in chosen["assumptions"]))
    st.json(chosen["numbers"])
    st.caption(
        f"Data {chosen['data_hash'][:12]}, from {moment(chosen['window_start'])} to {moment(chosen['window_end'])}; "
        f"last computed {moment(chosen['checked_at'])}. `pointsman certify {chosen['id']}` computes it again."
    )


def _row(row: Row) -> dict[str, object]:
    return {
        "Made, UTC": moment(row["created_at"]).removesuffix(" UTC"),
        "Claim": row["claim"].replace("_", " "),
        "Holds": "yes" if row["holds"] else "no",
        "Version": str(row["router_version_id"])[:8],
        "Against": str(row["incumbent_id"] or "")[:8],
        "Confidence": f"{100 * (1 - row['alpha']):.4g} %",
        "Judge units": "yes" if row["judge_units"] else "",
        "Id": str(row["id"]),
    }
