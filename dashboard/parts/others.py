"""What other routers chose for this request, as logged beside the decision, and what one would choose if asked now."""

from __future__ import annotations

import json
from typing import Any

import streamlit as st

from dashboard.data import Source
from dashboard.gateway import Reply, dry_run, read_key
from dashboard.words import NOTHING, milliseconds, moment, number, plain
from pointsman.queries.routers import VersionLine, router_versions

Record = dict[str, Any]
OFFERED = 50


def draw(record: Record, source: Source) -> None:
    st.subheader("Other routers")
    _logged(record["decision"])
    _ask(record, source)


def _logged(decision: Record) -> None:
    picks = (decision["shadow_picks"] or {}).get("picks") or ()
    if not picks:
        st.caption("No other router was asked beside this decision.")
        return
    st.dataframe(
        [
            {
                "Part": pick.get("part") or NOTHING,
                "Version": str(pick.get("version"))[:8],
                "Kind": pick.get("kind") or NOTHING,
                "Chose": pick.get("worker") or NOTHING,
                "Agrees": "yes" if pick.get("worker") == decision["chosen"] else "no",
                "Time": milliseconds(pick.get("ms")),
            }
            for pick in picks
        ],
        hide_index=True,
    )


def _ask(record: Record, source: Source) -> None:
    request = record["request"] or {}
    body = request.get("body")
    if not isinstance(body, dict) or "messages" not in body:
        st.caption("Another router cannot be asked: the request's body of chat messages was not stored.")
        return
    versions = router_versions(source.engine, OFFERED)
    with st.form("route", border=False):
        field, button = st.columns([4, 1], vertical_alignment="bottom")
        chosen = field.selectbox("Ask a router version", versions, format_func=_name, key="route-version")
        sent = button.form_submit_button("What would it choose?", width="stretch")
    if sent and chosen is not None:
        asked = {key: body[key] for key in ("messages", "tools", "response_format", "max_tokens") if key in body}
        asked["model"] = f"pointsman@{chosen.id}"
        _told(dry_run(source.gateway, asked, read_key(source.settings.home)), record["decision"])


def _told(reply: Reply, decision: Record) -> None:
    if not reply.accepted:
        what = "does not answer" if reply.status is None else f"refused with status {reply.status}"
        st.error(f"The gateway {what}: nothing was asked.")
        st.code(reply.text, language=None, wrap_lines=True)
        return
    told = json.loads(reply.text)
    same = "the same worker" if told["worker"] == decision["chosen"] else "another worker"
    st.info(f"It would draw {plain(told['worker'])}, {same}, with probability {number(told['propensity'])}.")
    scores = told.get("scores") or {}
    st.dataframe(
        [
            {"Worker": worker, "Probability": number(p, 4), "Score": number(scores.get(worker))}
            for worker, p in told["probabilities"].items()
        ],
        hide_index=True,
    )
    st.caption("Asked now, with today's pool; logged as a dry run, and no worker was called.")


def _name(version: VersionLine) -> str:
    return f"{version.id[:8]}, {version.kind}, {version.state}, {moment(version.created_at)}"
