"""Promoting and rolling back: what serves, who may, what is on record; and the α ledger."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text

from pointsman.actions.actor import Actor, actions_of
from pointsman.actions.alarms import acknowledge_alarm, resolve_alarm
from pointsman.actions.gates import start_gate
from pointsman.actions.routers import promote, roll_back, shadow
from pointsman.drift.alarms import About, alarms_on, raise_alarm
from pointsman.errors import UserError
from pointsman.promotion.difference import differences
from pointsman.promotion.ledger import enter_canary, entries, open_certification
from pointsman.promotion.plan import Plan, read_plan
from pointsman.promotion.serving import incumbent, newest_promotion
from pointsman.promotion.versions import find_version


def test_without_a_certificate_it_is_refused_unless_that_is_said(synthetic: Callable[..., Any], ana: Any) -> None:
    log_ = synthetic()
    with log_.engine.begin() as connection:
        with pytest.raises(UserError, match=r"no certificate says that .* is better than what serves"):
            promote(connection, ana, log_.project, log_.candidate, log_.clock)
        promote(connection, ana, log_.project, log_.candidate, log_.clock, reason="I know it", uncertified=True)
        assert incumbent(connection, log_.project) == log_.candidate
        record = actions_of(connection, log_.project)[0]
    assert (record.actor, record.action, record.subject, record.reason) == (
        "ana",
        "promote",
        log_.candidate,
        "I know it",
    )
    assert record.detail == {"certificate_id": None, "uncertified": True, "fallback": None}


@pytest.mark.parametrize("role", ["viewer", "reviewer"])
def test_who_only_looks_or_reviews_may_not(synthetic: Callable[..., Any], role: Any) -> None:
    log_, bob = synthetic(), Actor("bob", role)
    refused = rf"bob may not .*: that needs the role operator, and the role here is {role}"
    with log_.engine.begin() as connection:
        for act in (
            lambda: promote(connection, bob, log_.project, log_.candidate, log_.clock, uncertified=True),
            lambda: roll_back(connection, bob, log_.project, log_.clock),
            lambda: shadow(connection, bob, log_.project, log_.candidate, log_.clock, on=True),
            lambda: start_gate(connection, bob, log_.project, log_.candidate, log_.config, log_.clock),
        ):
            with pytest.raises(UserError, match=refused):
                act()
        assert actions_of(connection, log_.project) == []


def test_rolling_back_goes_one_step_and_then_to_the_file(synthetic: Callable[..., Any], ana: Any) -> None:
    log_ = synthetic()
    first, second = log_.candidate, log_.version("third")
    states = "SELECT state FROM router_version WHERE id = :id"
    with log_.engine.begin() as connection:
        for version in (first, second):
            promote(connection, ana, log_.project, version, log_.clock, uncertified=True)
    assert (log_.sql(states, id=first)[0].state, log_.sql(states, id=second)[0].state) == ("retired", "serving")
    with log_.engine.begin() as connection:
        assert roll_back(connection, ana, log_.project, log_.clock, reason="worse") == first
    assert (log_.sql(states, id=first)[0].state, log_.sql(states, id=second)[0].state) == ("serving", "retired")


def test_rolling_back_the_only_promotion_lets_the_file_serve(synthetic: Callable[..., Any], ana: Any) -> None:
    log_ = synthetic()
    with log_.engine.begin() as connection:
        with pytest.raises(UserError, match="nothing was promoted here: the routers of the configuration file serve"):
            roll_back(connection, ana, log_.project, log_.clock)
        promote(connection, ana, log_.project, log_.candidate, log_.clock, uncertified=True)
        assert roll_back(connection, ana, log_.project, log_.clock) is None
        assert newest_promotion(connection, log_.project).version is None
    assert read_plan(log_.engine)[0].projects == {}


def test_a_promotion_ends_the_gate_that_runs(synthetic: Callable[..., Any], ana: Any) -> None:
    log_ = synthetic()
    log_.gate()
    other = log_.version("third")
    with log_.engine.begin() as connection:
        promote(connection, ana, log_.project, other, log_.clock, uncertified=True)
    row = log_.sql("SELECT state, reason FROM gate")[0]
    assert (row.state, row.reason) == ("stopped", "another version was promoted")


def test_versions_are_named_by_their_beginning(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    with log_.engine.connect() as connection:
        assert find_version(connection, f"pointsman@{log_.candidate[:9]}").id == log_.candidate
        for wrong, said in (
            ("abc", "expected a router version's id or its first 8 characters, got 'abc'"),
            ("00000000", "there is no router version '00000000'"),
            ("%%%%%%%%%", "expected a router version's id"),
        ):
            with pytest.raises(UserError, match=said):
                find_version(connection, wrong)


def test_the_plan_says_what_gateways_serve_and_survives_without_postgres(
    synthetic: Callable[..., Any], ana: Any, tmp_path: Any
) -> None:
    log_ = synthetic()
    gate = log_.gate()
    third = log_.version("third")
    with log_.engine.begin() as connection:
        shadow(connection, ana, log_.project, third, log_.clock, on=True)
    plan, alarms = read_plan(log_.engine)
    standing = plan.projects[log_.project]
    assert (standing.promoted, standing.gate.id, standing.gate.rho) == (None, gate, 0.5)
    assert plan.shadows == (third,) and set(plan.candidates) == {log_.candidate, log_.incumbent} and alarms == []
    plan.save(tmp_path)
    assert Plan.saved(tmp_path) == plan
    assert (tmp_path / "versions.json").stat().st_mode & 0o777 == 0o600
    assert Plan.saved(tmp_path / "nowhere") == Plan()


def test_the_ledger_spends_half_for_gates_half_for_sets_and_starts_over_with_the_pool(
    project: str, engine: Any
) -> None:
    from datetime import UTC, datetime

    now, version = datetime(2026, 11, 1, tzinfo=UTC), "00000000-0000-0000-0000-000000000001"
    with engine.begin() as connection:
        spent = [
            enter_canary(connection, project, "e1", 0.05, now, version=version, gate=version).alpha for _ in range(3)
        ]
        assert spent == pytest.approx([0.025 / 2, 0.025 / 6, 0.025 / 12])
        opened = open_certification(connection, project, "e1", 0.05, now, version=version, data_hash="rows")
        assert opened.alpha == pytest.approx(0.025 / 2) and opened.index == 1
        with pytest.raises(UserError, match=r"was opened on 2026-11-01 00:00 and is retired"):
            open_certification(connection, project, "e1", 0.05, now, version=version, data_hash="rows")
        fresh = enter_canary(connection, project, "e2", 0.05, now, version=version, gate=version)
        assert fresh.index == 1
        total = sum(entry.alpha for entry in entries(connection, project, "e1"))
        assert total < 0.05 and entries(connection, project, "e1")[0].spent == pytest.approx(total)


def test_alarms_are_raised_once_until_they_are_resolved(synthetic: Callable[..., Any], ana: Any) -> None:
    log_ = synthetic()
    about = About(worker="alpha")
    with log_.engine.begin() as connection:
        first = raise_alarm(connection, log_.project, "worker_reward", "it fell", log_.clock, about)
        assert first is not None
        assert raise_alarm(connection, log_.project, "worker_reward", "it fell", log_.clock, about) is None
        assert (
            raise_alarm(connection, log_.project, "worker_reward", "beta fell", log_.clock, About("beta")) is not None
        )
        acknowledge_alarm(connection, ana, log_.project, first, log_.clock)
        assert len(alarms_on(connection, log_.project)) == 2
        resolve_alarm(connection, ana, log_.project, first, log_.clock, reason="mended")
        assert [row.worker for row in alarms_on(connection, log_.project)] == ["beta"]
        with pytest.raises(UserError, match=r"there is no alarm .* that is on"):
            resolve_alarm(connection, ana, log_.project, first, log_.clock)
        assert raise_alarm(connection, log_.project, "worker_reward", "again", log_.clock, about) is not None


def test_a_candidate_is_told_apart_part_by_part() -> None:
    before = {"cards": {"b": "B.", "a": "A."}, "instructions": "Choose.", "template_body": None}
    after = {"cards": {"b": "B, better.", "c": "C."}, "instructions": "Choose.", "scoring": "structured"}
    assert [(one.part, one.before, one.after) for one in differences(before, after)] == [
        ("card a", "A.", None), ("card b", "B.", "B, better."), ("card c", None, "C."),
        ("scoring", None, "structured"),
    ]  # fmt: skip
    assert differences(before, before) == []


def test_a_trained_router_falls_back_on_the_prompted_one_that_was_promoted_last(
    synthetic: Callable[..., Any], ana: Any
) -> None:
    log_ = synthetic()
    trained = log_.version("trained")
    with log_.engine.begin() as connection:
        connection.execute(text("UPDATE router_version SET kind = 'classic' WHERE id = :id"), {"id": trained})
        for version in (log_.candidate, trained):
            promote(connection, ana, log_.project, version, log_.clock, uncertified=True)
        assert newest_promotion(connection, log_.project).fallback == log_.candidate  # type: ignore[union-attr]
        rows = connection.execute(text("SELECT id::text, state FROM router_version"))
        states = {row[0]: row[1] for row in rows}
        assert (states[trained], states[log_.candidate]) == ("serving", "serving")  # it decides what the other cannot
    standing = read_plan(log_.engine)[0].projects[log_.project]
    assert (standing.promoted, standing.fallback) == (trained, log_.candidate)
    assert standing.cards is None  # no request told which descriptions the file had
