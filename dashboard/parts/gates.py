"""Gates: how far each is, its e-processes against their thresholds, and the candidate's advantage as rows came."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from math import log
from typing import Any

import streamlit as st

from dashboard import acting, charts, curves
from dashboard.data import Source
from dashboard.people import may
from dashboard.words import moment, number, percent, plain
from pointsman.actions.gates import stop_gate
from pointsman.promotion.register import OPEN
from pointsman.queries.gates import MOST, bound_of, effect_path, gate_steps, gates
from pointsman.queries.proportion import Proportion

Row = Mapping[str, Any]


def section(source: Source, project: str) -> None:
    st.subheader("Gates")
    found = gates(source.engine, project)
    if not found:
        st.caption("None yet: a candidate's gate is started where the candidate is opened.")
        return
    st.dataframe([_row(gate) for gate in found], hide_index=True)
    chosen = st.selectbox("Gate", found, format_func=_name, key="gate")
    if chosen is not None:
        _one(source, project, chosen)


def _row(gate: Row) -> dict[str, object]:
    return {
        "Registered, UTC": moment(gate["registered_at"]).removesuffix(" UTC"),
        "State": gate["state"],
        "Candidate": str(gate["candidate_id"])[:8],
        "Against": str(gate["incumbent_id"])[:8],
        "Mode": gate["mode"],
        "α": number(gate["terms"]["alpha"], 4),
        "Rows": gate["rows"],
        "By": gate["registered_by"] or "",
        "Reason": gate["reason"] or "",
    }


def _one(source: Source, project: str, gate: Row) -> None:
    steps = gate_steps(source.engine, project, str(gate["id"]))
    terms = gate["terms"]
    st.caption(
        plain(
            f"Better by more than {-terms['epsilon'] or 0:g} with error {terms['alpha']:.4g}; rolled back with error "
            f"{terms['alpha_rollback']:.4g}. Candidate's share after rows: "
            + ", ".join(f"{float(share):.0%} from {int(rows)}" for rows, share in gate["ramp"]["steps"])
        )
    )
    if not steps:
        st.caption("No row yet: the routers have not disagreed, or nothing has closed.")
    else:
        _pictures(gate, steps)
    if gate["state"] in OPEN and may(source.actor, "operator") and st.button("Stop the gate", icon=":material/stop:"):
        now, identity = datetime.now(UTC), str(gate["id"])
        done = acting.act(source.engine, lambda c: stop_gate(c, source.actor, project, identity, now))
        if done is not None:
            acting.say_next("Stopped. Its α stays spent; the candidate may enter another gate.")


def _pictures(gate: Row, steps: tuple[Row, ...]) -> None:
    terms = gate["terms"]
    arms = Proportion(sum(step["arm"] == "candidate" for step in steps), len(steps))
    known = Proportion(sum(bool(step["known"]) for step in steps), len(steps))
    st.caption(
        f"n = {len(steps):,} rows, {percent(arms)} of them the candidate's, {percent(known)} with a reward; of the "
        f"others the timeout's value {gate['timeout_value']:g} counts."
    )
    left, right = st.columns(2, gap="large")
    with left:
        charts.show(
            curves.evidence(steps, -log(terms["alpha"]), -log(terms["alpha_rollback"])),
            "Evidence by row with thresholds",
        )
    with right:
        path = effect_path([float(step["effect"]) for step in steps], bound_of(gate["ramp"]))
        charts.show(curves.effect([vars(point) for point in path]), "Advantage by row with its confidence sequence")
        cut = f" The first {MOST:,} rows." if len(steps) > MOST else ""
        st.caption(f"Mean advantage with its 95% confidence sequence, valid at every row.{cut} The left side decides.")


def _name(gate: Row) -> str:
    return f"{moment(gate['registered_at'])}, {gate['state']}, candidate {str(gate['candidate_id'])[:8]}"
