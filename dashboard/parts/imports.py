"""Bringing in what another system logged: a file, its format, and a name for the data set."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import streamlit as st

from dashboard import acting
from dashboard.data import Source
from dashboard.people import may
from dashboard.words import plain
from pointsman.actions.imports import import_log
from pointsman.errors import UserError
from pointsman.intake.maps import FORMATS

TYPES = ["jsonl", "json", "csv", "parquet", "gz", "zst"]


def section(source: Source, project: str) -> None:
    st.subheader("Import")
    if not may(source.actor, "operator"):
        st.caption(f"Importing needs the role operator; yours is {source.actor.role}.")
        return
    with st.expander("Import what another system logged", icon=":material/upload:"), st.form("import", border=False):
        given = st.file_uploader("File", type=TYPES, key="import-file")
        left, right = st.columns(2)
        form = left.selectbox("Format", FORMATS, key="import-format")
        name = right.text_input("Name of the data set", max_chars=80, key="import-name").strip()
        learn = st.checkbox("Routers may learn from it", value=False, key="import-learn")
        sent = st.form_submit_button("Import", type="primary")
        st.caption("The command `pointsman import` has more: column maps, scores, a dry run.")
    if sent and given is None:
        st.warning("Choose a file first.")
    elif sent and given is not None and form is not None:
        _run(source, project, given.getvalue(), Path(given.name).suffixes, form, name, learn=bool(learn))


def _run(
    source: Source, project: str, content: bytes, suffixes: list[str], form: str, name: str, *, learn: bool
) -> None:
    with tempfile.TemporaryDirectory(prefix="pointsman-import-") as folder:
        file = Path(folder) / f"upload{''.join(suffixes[-2:])}"
        file.write_bytes(content)
        try:
            made = import_log(
                source.engine, source.actor, project, source.settings, source.config, file, form, name,
                datetime.now(UTC), learn=learn,
            )  # fmt: skip
        except UserError as error:
            acting.refused(str(error))
            return
        except psycopg.OperationalError as error:
            st.error("The database did not take it: try again; rows that came in are not taken twice.")
            st.code(str(error).strip(), language=None, wrap_lines=True)
            return
    acting.say_next(
        f"Imported {made.survey.records:,} records as {plain(name)}; {made.rejects.count:,} lines were rejected."
    )
