"""The whole life of a gate on a real gateway over the sandbox: a better candidate is let in, an equal one is not."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from pointsman.actions.actor import Actor
from pointsman.actions.gates import start_gate
from pointsman.actions.routers import roll_back, shadow
from pointsman.identity import DEFAULT_PROJECT_ID as PROJECT
from pointsman.promotion.certify import recheck
from pointsman.promotion.register import Overrides

BATCH = 150
AT_MOST = 900


def start(live: Any, version: str, mode: Any = "auto") -> str:
    with live.engine.begin() as connection:
        gate = start_gate(
            connection, Actor("ana", "operator"), PROJECT, version, live.config, datetime.now(UTC),
            serving=live.served, overrides=Overrides(mode=mode),
        )  # fmt: skip
    live.begin()
    return gate


def until_decided(live: Any, gate: str, requests: int = AT_MOST) -> tuple[Any, int]:
    sent = 0
    while True:
        live.drive(BATCH)
        sent += BATCH
        progress = live.look(gate)
        if progress.state != "running" or sent >= requests:
            return progress, sent


def beside(live: Any, version: str, requests: int = 20) -> None:
    """The candidate as a shadow: it is asked with every request, and its picks change nothing."""
    with live.engine.begin() as connection:
        shadow(connection, Actor("ana", "operator"), PROJECT, version, datetime.now(UTC), on=True)
    live.begin()
    live.drive(requests, feedback=0)
    rows = live.gateway.sql("SELECT * FROM decision WHERE origin = 'traffic' AND forced IS NULL")
    assert len(rows) >= requests
    for row in rows:
        assert row.gate_id is None and row.router_version_id != UUID(version)
        assert [pick["part"] for pick in row.shadow_picks["picks"]] == ["serving", "shadow"]
        assert row.shadow_picks["picks"][1]["version"] == version
        serving = row.shadow_picks["picks"][0]["scores"]
        assert row.explored or serving[row.chosen] == max(serving.values())


def test_a_truthful_candidate_is_promoted_over_nonsense_and_rolled_back_by_one_command(
    live: Callable[..., Any],
) -> None:
    at = live("nonsense")
    file_version = at.served
    candidate = at.version(at.cards("truthful"))
    beside(at, candidate)
    gate = start(at, candidate)
    terms = at.gateway.sql("SELECT terms, ramp, spec_hash, registered_at FROM gate")[0]
    progress, sent = until_decided(at, gate)
    assert progress.state == "promoted", progress
    assert sent <= AT_MOST
    assert at.gateway.sql("SELECT terms, ramp, spec_hash, registered_at FROM gate")[0] == terms
    assert at.gateway.sql("SELECT min(assigned_at) AS first FROM gate_row")[0].first > terms.registered_at
    at.begin()
    assert at.served == candidate
    answer = at.gateway.chat("What is 17 times 23?")
    assert answer.headers["x-pointsman-router"] == f"harness@{candidate}"
    assert at.state(candidate) == "serving"

    certificate = at.gateway.sql("SELECT id, holds, numbers FROM certificate")[0]
    assert certificate.holds and certificate.numbers["effect"] > 0
    at.gateway.ship()
    with at.engine.begin() as connection:
        again = recheck(connection, PROJECT, str(certificate.id), datetime.now(UTC))
    assert (again.holds, again.faults, again.remarks) == (True, (), ())
    assert again.numbers["log_e"] == pytest.approx(certificate.numbers["log_e"])

    with at.engine.begin() as connection:
        assert roll_back(connection, Actor("ana", "operator"), PROJECT, datetime.now(UTC)) is None
    at.begin()
    assert at.served == file_version
    done = [row.action for row in at.gateway.sql("SELECT action FROM actor_log ORDER BY id")]
    assert done == ["shadow_on", "gate_start", "promote", "roll_back"]


def test_an_equal_candidate_is_not_promoted_and_what_is_logged_is_what_was_drawn(live: Callable[..., Any]) -> None:
    at = live("truthful", deadline=60, epsilon=0.2)
    others = dict(zip(at.world.names, reversed(list(at.cards("truthful").values())), strict=True))
    gate = start(at, at.version(others))
    coin = random.Random(5)
    for sent in at.drive(220, feedback=0).sent:  # by what is said of them the two are equal
        word = {"decision_id": sent.decision_id, "metric": "helpful", "value": coin.random() < 0.7}
        assert at.gateway.client.post("/v1/feedback", json=word).status_code == 200
    at.gateway.ship()
    progress = at.look(gate, later=100)
    assert progress.state == "running", progress
    assert progress.rows > 50

    rows = at.gateway.sql("SELECT * FROM decision WHERE origin = 'traffic' AND forced IS NULL ORDER BY id")
    assert len(rows) >= 220
    expected = observed = variance = 0.0
    for row in rows:  # every row has its own vector: Σ (indicator − p) of a fixed worker is a martingale
        p = row.probabilities.get(at.world.names[0], 0.0)
        expected, observed, variance = (
            expected + p,
            observed + (row.chosen == at.world.names[0]),
            variance + p * (1 - p),
        )
        assert row.propensity == pytest.approx(row.probabilities[row.chosen])
        assert sum(row.probabilities.values()) == pytest.approx(1)
    assert abs(observed - expected) < 4 * variance**0.5
    explored = [row for row in rows if row.explored]
    assert 0.12 < len(explored) / len(rows) < 0.28
    assert {row.gate_id for row in explored} == {None}
    gated = [row for row in rows if row.gate_id is not None]
    assert all(row.shadow_picks["gate"]["rho"] == 0.5 and len(row.shadow_picks["picks"]) == 2 for row in gated)
    differ = [
        row for row in rows
        if not row.explored and len({pick["worker"] for pick in row.shadow_picks["picks"]}) == 2
    ]  # fmt: skip
    assert {row.id for row in differ} == {row.id for row in gated}
    taken = at.gateway.sql("SELECT count(*) AS n, bool_and(known) AS known FROM gate_row")[0]
    assert (taken.n, taken.known) == (len(gated), True)


def test_a_worse_candidate_is_rolled_back_with_an_alarm(live: Callable[..., Any]) -> None:
    at = live("truthful")
    candidate = at.version(at.cards("nonsense"))
    gate = start(at, candidate)
    progress, _ = until_decided(at, gate, requests=1_200)
    assert progress.state == "rolled_back", progress
    assert progress.reason == "the candidate is worse than the incumbent where they disagree"
    at.begin()
    assert at.gateway.state.generation.serving(PROJECT).canary is None
    assert at.state(candidate) == "retired"
    told = at.gateway.client.get("/readyz").json()["alarms"]
    assert [(alarm["kind"], progress.reason in alarm["message"]) for alarm in told] == [("guardrail", True)]
    assert 'pointsman_alarms{kind="guardrail"} 1.0' in at.gateway.client.get("/metrics").text
