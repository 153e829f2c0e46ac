"""Routers: what serves, the versions with their lineage, gates with their evidence, certificates, and promotions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import streamlit as st

from dashboard import acting, charts, data, plane
from dashboard.gateway import read_key, readiness, serving
from dashboard.parts import certificates, evaluations, gates, version
from dashboard.people import may
from dashboard.shared import once
from dashboard.words import NOTHING, dollars, interval, moment, number, percent, plain
from pointsman.actions.routers import roll_back
from pointsman.identity import DEFAULT_PROJECT_ID
from pointsman.queries.routers import (
    VersionLine,
    VersionRecord,
    promotion_history,
    router_versions,
    version_records,
)
from pointsman.queries.routers import (
    certificates as certificates_of,
)
from pointsman.queries.routers import (
    plane as plane_of,
)

PARAMETER = "router"


def page() -> None:
    source = data.source()
    st.title("Routers")
    acting.said()
    project = source.one
    history = promotion_history(source.engine, project)
    serves = now_serving(source, project, history)
    _serving(source, project, serves, history)
    found = router_versions(source.engine)
    records = once(source, version_records)
    proofs = certificates_of(source.engine, project)
    chosen = _versions(found, records, serves, proofs)
    if chosen is not None:
        version.draw(source, project, chosen, found, serves)
    gates.section(source, project)
    certificates.table(proofs)
    _plane(source, project, found, records)
    evaluations.section(source, project)
    _history(history)


def now_serving(source: data.Source, project: str, history: tuple[Mapping[str, Any], ...]) -> str | None:
    """The id of the version that serves: the promoted one, else the one the gateway names; None where nobody knows."""
    if history and history[0]["router_version_id"] is not None:
        return str(history[0]["router_version_id"])
    if project == DEFAULT_PROJECT_ID:
        return serving(source.gateway, read_key(source.settings.home))
    return None


def _serving(source: data.Source, project: str, serves: str | None, history: tuple[Mapping[str, Any], ...]) -> None:
    st.subheader("What serves")
    promoted = bool(history) and history[0]["router_version_id"] is not None
    if promoted:
        newest = history[0]
        st.code(serves or NOTHING, language=None)
        st.caption(plain(f"Promoted by {newest['actor']} at {moment(newest['made_at'])}. {newest['reason'] or ''}"))
    else:
        st.code(serves or "the chain of pointsman.toml", language=None)
        st.caption("Nothing was promoted here, or it was rolled back: the routers of the configuration file serve.")
    if not promoted or not may(source.actor, "operator"):
        return
    with st.form("roll-back", border=False):
        why, button = st.columns([4, 1], vertical_alignment="bottom")
        reason = why.text_input("Why roll back", max_chars=500, key="roll-back-reason").strip()
        sent = button.form_submit_button("Roll back", icon=":material/undo:", width="stretch")
    if sent and not reason:
        st.warning("Say why: the reason stands with the record.")
    elif sent:
        now, cards = datetime.now(UTC), cards_hash(source)
        done = acting.act(
            source.engine,
            lambda c: (roll_back(c, source.actor, project, now, reason=reason, cards_hash=cards), True),
        )
        if done is not None:
            acting.say_next(
                f"Rolled back: {f'{done[0]} serves' if done[0] else 'the routers of the file serve'} again."
            )


def cards_hash(source: data.Source) -> str | None:
    """Of the descriptions that the gateway has from the file; None where it does not answer."""
    found = (readiness(source.gateway) or {}).get("cards")
    return found if isinstance(found, str) else None


def _versions(
    found: tuple[VersionLine, ...],
    records: Mapping[str, VersionRecord],
    serves: str | None,
    proofs: tuple[Mapping[str, Any], ...],
) -> VersionLine | None:
    st.subheader("Versions")
    if not found:
        st.caption("No version yet: the gateway and jobs such as `optimize` and `train` make them.")
        return None
    proven = {str(row["router_version_id"]) for row in proofs if row["holds"]}
    rows = [_row(one, records.get(one.id), one.id == serves, one.id in proven) for one in found]
    event = st.dataframe(
        rows, hide_index=True, on_select="rerun", selection_mode="single-row", key=f"versions-{found[0].id}"
    )
    st.caption(
        "Figures are of each version's newest traffic, on whatever requests it happened to decide: no fair comparison. "
        "Select one to open it."
    )
    selected = event["selection"]["rows"]
    if selected and selected[0] < len(found):
        st.query_params[PARAMETER] = found[selected[0]].id
    wanted = st.query_params.get(PARAMETER)
    return next((one for one in found if one.id == wanted), None)


def _row(one: VersionLine, record: VersionRecord | None, serves: bool, proven: bool) -> dict[str, object]:
    return {
        "Version": one.id[:8],
        "Kind": one.kind,
        "State": "serves now" if serves else one.state,
        "Certified": "yes" if proven else "",
        "Parent": one.parent_id[:8] if one.parent_id else NOTHING,
        "Made, UTC": moment(one.created_at).removesuffix(" UTC"),
        "Decisions": record.decisions if record else 0,
        "Success": percent(record.success) if record else NOTHING,
        "95% interval": interval(record.success) if record else NOTHING,
        "Mean reward": f"{number(record.reward)} (n = {record.rewarded:,})" if record and record.rewarded else NOTHING,
        "Mean cost": f"{dollars(repr(record.cost))} (n = {record.costed:,})" if record and record.costed else NOTHING,
    }


def _plane(
    source: data.Source, project: str, found: tuple[VersionLine, ...], records: Mapping[str, VersionRecord]
) -> None:
    st.subheader("Cost and quality")
    points = once(source, plane_of)
    if not points:
        st.caption("No request was answered by every worker with a score: a `probe` or `audit` job makes such rows.")
        return
    kinds = {one.id: f"{one.kind} {one.id[:8]}" for one in found}
    charts.show(plane.picture(points, records, kinds), "Mean score against mean cost of workers, oracle and routers")
    st.dataframe(
        [
            {"Name": one.name, "Mean score": number(one.score), "Requests": one.n,
             "USD per request": NOTHING if one.cost is None else dollars(repr(one.cost))}
            for one in points
        ],
        hide_index=True,
    )  # fmt: skip
    st.caption(
        "Workers and the oracle (each request's best) on the same full-information rows; routers, as crosses, by the "
        "rewards of their own traffic: other requests, so only roughly in one picture."
    )


def _history(history: tuple[Mapping[str, Any], ...]) -> None:
    st.subheader("Promotions")
    if not history:
        st.caption("None yet.")
        return
    st.dataframe(
        [
            {"Made, UTC": moment(row["made_at"]).removesuffix(" UTC"), "What": row["kind"].replace("_", " "),
             "Serves then": str(row["router_version_id"] or "the file")[:8],
             "Before": str(row["previous_id"] or "the file")[:8], "By": row["actor"], "Why": row["reason"] or ""}
            for row in history
        ],
        hide_index=True,
    )  # fmt: skip
