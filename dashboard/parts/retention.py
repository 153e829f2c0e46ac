"""What is kept, for how long, and what is blacked out: as configured, and a job that applies it now."""

from __future__ import annotations

from datetime import UTC, datetime

import streamlit as st

from dashboard import acting, go
from dashboard.data import Source
from dashboard.people import may
from pointsman.actions.jobs import start_job
from pointsman.errors import UserError


def section(source: Source, project: str) -> None:
    st.subheader("Retention and redaction")
    log = source.config.log
    st.text(
        f"Rows are kept {log.retention:,} days. Texts are {'stored' if log.store_text else 'not stored'}. "
        f"{len(log.redact)} patterns are blacked out before the journal."
    )
    if log.redact:
        st.code("\n".join(log.redact), language=None)
    st.caption("Set by `[log]` in `pointsman.toml`.")
    if may(source.actor, "operator") and st.button("Apply retention now", icon=":material/auto_delete:"):
        try:
            job = start_job(source.engine, source.actor, project, "retention", {}, datetime.now(UTC))
        except UserError as error:
            acting.refused(str(error))
            return
        go.to("jobs", job=job.id)
