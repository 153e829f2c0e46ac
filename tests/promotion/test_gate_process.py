"""A gate over a log: what its rows are, what they count, what follows; and that anybody computes the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from math import log
from typing import Any

import pytest
from sqlalchemy import text

from pointsman.actions.gates import stop_gate
from pointsman.actions.routers import promote
from pointsman.errors import UserError
from pointsman.ids import new_id
from pointsman.promotion.certify import recheck
from pointsman.promotion.gate_proof import recompute
from pointsman.promotion.process import process_gate
from pointsman.promotion.register import gate_of

BETTER = {"candidate": 0.9, "incumbent": 0.4}
EQUAL = {"candidate": 0.6, "incumbent": 0.6}


def test_all_terms_stand_in_the_database_before_the_first_row(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic("[gate]\nepsilon = 0.02\nmax_errors = 0.2\nmax_latency = 9\nmax_cost = 0.5\ndays = 3\n")
    gate = log_.gate("propose")
    row = log_.sql("SELECT * FROM gate")[0]
    assert (row.state, row.mode, row.rows, row.deadline_seconds, row.timeout_value) == (
        "running",
        "propose",
        0,
        900,
        0.5,
    )
    assert row.terms["alpha"] == pytest.approx(0.05 / 2 / 2) and row.terms["epsilon"] == 0.02
    assert [limit["name"] for limit in row.terms["limits"]] == ["errors", "latency", "cost"]
    assert row.guards == {"errors": 0.2, "latency_seconds": 9.0, "cost": 0.5}
    assert row.ramp == {"steps": [[0, 0.5]]}
    assert row.expires_at - row.registered_at == timedelta(days=3)
    assert row.pool_epoch == log_.pool.epoch
    spent = log_.sql("SELECT * FROM alpha_ledger")[0]
    assert (spent.purpose, spent.index, spent.alpha, str(spent.gate_id)) == ("gate", 1, row.terms["alpha"], gate)
    assert log_.sql("SELECT state FROM router_version WHERE id = :id", id=log_.candidate)[0].state == "canary"


def test_a_better_candidate_passes_and_in_mode_propose_waits_for_a_person(
    synthetic: Callable[..., Any], ana: Any
) -> None:
    log_ = synthetic()
    gate = log_.gate("propose")
    log_.traffic(gate, 200, BETTER)
    progress = log_.look(gate)
    assert (progress.state, progress.rows) == ("ready", 200)
    assert log_.sql("SELECT * FROM promotion") == []
    with log_.engine.begin() as connection:
        promote(connection, ana, log_.project, log_.candidate[:13], log_.clock, reason="looks well")
    row = log_.sql("SELECT * FROM promotion")[0]
    assert (str(row.router_version_id), row.actor, str(row.gate_id)) == (log_.candidate, "ana", gate)
    assert row.certificate_id is not None
    assert log_.sql("SELECT state FROM gate")[0].state == "promoted"


def test_the_certificate_is_recomputed_from_the_log_and_a_changed_log_is_noticed(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    gate = log_.gate()
    log_.traffic(gate, 200, BETTER)
    assert log_.look(gate).state == "promoted"
    certificate = str(log_.sql("SELECT id FROM certificate")[0].id)
    with log_.engine.begin() as connection:
        again = recheck(connection, log_.project, certificate, log_.clock)
        assert (again.holds, again.faults) == (True, ())
        assert again.numbers["log_e_reached"] >= log(1 / 0.0125)
    for change, fault in (
        ("UPDATE gate_row SET utility = 1 - utility WHERE seq = 7", "row 7: the log says"),
        ("UPDATE gate_row SET log_e = log_e + 1 WHERE seq = 50", "row 50: ln E is"),
    ):
        with log_.engine.connect() as connection:
            connection.execute(text(change))
            seen = recheck(connection, log_.project, certificate, log_.clock)
            assert not seen.holds and any(fault in one for one in seen.faults), seen.faults
            connection.rollback()
    with log_.engine.begin() as connection:
        connection.execute(text("DELETE FROM decision WHERE id IN (SELECT decision_id FROM gate_row WHERE seq < 4)"))
        seen = recheck(connection, log_.project, certificate, log_.clock)
        assert seen.holds and "3 of 200 rows are in the gate's record alone" in seen.remarks[0]


def test_an_episode_is_one_row_its_reward_is_the_mean_of_what_was_known_when_it_closed(
    synthetic: Callable[..., Any],
) -> None:
    log_ = synthetic()
    gate, episode = log_.gate(), new_id()
    first = log_.decision(gate, "candidate", episode=episode)
    second = log_.decision(gate, "candidate", episode=episode)
    log_.word(first, True)
    log_.word(second, False)
    log_.word(second, True, after=5_000)  # too late: it changes labels, not the gate
    late = log_.decision(gate, "candidate", episode=episode, outcome={"ended_at": log_.clock + timedelta(hours=2)})
    log_.word(late, False)
    progress = log_.look(gate)
    assert progress.rows == 1
    row = log_.sql("SELECT * FROM gate_row")[0]
    assert (str(row.decision_id), row.utility, row.known, row.arm) == (first, 0.5, True, "candidate")


def test_a_word_on_the_whole_episode_counts(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    gate, episode = log_.gate(), new_id()
    first = log_.decision(gate, "incumbent", episode=episode)
    log_.word(first, True, decision_id=None, episode_id=episode)
    log_.look(gate)
    assert log_.sql("SELECT utility, known FROM gate_row")[0] == (1.0, True)


def test_rows_are_taken_in_order_of_assignment_and_an_open_one_holds_the_others_back(
    synthetic: Callable[..., Any],
) -> None:
    log_ = synthetic()
    gate = log_.gate()
    slow = log_.decision(gate, "candidate", outcome={})
    quick = [log_.decision(gate, "incumbent") for _ in range(3)]
    assert log_.look(gate, after=905).rows == 0  # the quick ones have closed, the slow one may still end
    assert log_.look(gate, after=2_000).rows == 4
    rows = log_.sql("SELECT decision_id, known, utility, observed FROM gate_row ORDER BY seq")
    assert [str(row.decision_id) for row in rows] == [slow, *quick]
    assert (rows[0].known, rows[0].utility, rows[0].observed) == (False, 0.5, {"errors": 1.0})
    assert log_.look(gate).taken == 0


def test_explored_forced_and_foreign_rows_never_enter(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    gate = log_.gate()
    log_.decision(gate, "candidate", explored=True)
    log_.decision(gate, "candidate", forced="sticky")
    log_.decision(gate, "candidate", origin="dry_run")
    log_.decision(gate, "candidate", project_id=new_id())
    log_.decision(None, "candidate")
    assert log_.look(gate).rows == 0


def test_a_failing_candidate_is_rolled_back_by_its_guardrail(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic("[gate]\nmax_errors = 0.1\n")
    gate = log_.gate()
    for n in range(60):
        arm = ("candidate", "incumbent")[n % 2]
        outcome = {"status": "upstream_error", "worker": None} if n % 4 == 0 else {"status": "ok"}
        log_.decision(gate, arm, outcome=outcome)
    progress = log_.look(gate)
    assert (progress.state, progress.reason) == ("rolled_back", "guardrail errors: the candidate passed its limit")
    alarm = log_.sql("SELECT kind, message, gate_id FROM alarm")[0]
    assert alarm.kind == "guardrail" and str(alarm.gate_id) == gate


def test_slowness_and_cost_have_guardrails_too(synthetic: Callable[..., Any]) -> None:
    for more, outcome, name in (
        ("max_latency = 1\n", {"latency_ms": 1_500.0}, "latency"),
        ("max_cost = 0.0005\n", {"cost": "0.01"}, "cost"),
    ):
        with_engine = synthetic(f"[gate]\n{more}")
        gate = with_engine.gate()
        for _ in range(40):
            with_engine.decision(gate, "candidate", outcome=outcome)
        assert with_engine.look(gate).reason == f"guardrail {name}: the candidate passed its limit"
        with with_engine.engine.begin() as connection:
            connection.execute(text("TRUNCATE gate, gate_row, decision, outcome, router_version, pool_snapshot"))


def test_a_verdict_that_rests_on_one_key_is_held_back(synthetic: Callable[..., Any]) -> None:
    """One key is behind a quarter of the traffic, and praises every answer of one worker."""
    log_ = synthetic()
    gate, honest, poisoner = log_.gate(), new_id(), new_id()
    for n in range(20):
        log_.traffic(gate, 23, EQUAL, seed=n, key=honest)
        log_.traffic(gate, 7, {"candidate": 1.0, "incumbent": 0.0}, seed=n, key=poisoner)
    progress = log_.look(gate)
    crossed = max(row.log_e for row in log_.sql("SELECT log_e FROM gate_row"))
    assert crossed > log(1 / 0.0125), "the attack is too weak to show anything"
    assert progress.state == "running"
    assert progress.reason == f"passed, but the evidence rests on key {poisoner}: without its rows it never reached 1/α"


def test_five_percent_of_the_traffic_cannot_talk_a_bad_candidate_in(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    gate, honest, poisoner = log_.gate(), new_id(), new_id()
    for n in range(10):
        log_.traffic(gate, 57, {"candidate": 0.5, "incumbent": 0.6}, seed=n, key=honest)
        log_.traffic(gate, 3, {"candidate": 1.0, "incumbent": 0.0}, seed=n, key=poisoner)
    assert log_.look(gate).state in ("running", "rolled_back")


def test_a_certificate_holds_whichever_row_closed_last(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    gate = log_.gate()
    for n in range(40):  # of two rows the first one takes longer, so that the last one of all closes before it
        for lasts in (30, 1):
            arm = "candidate" if n % 2 else "incumbent"
            ended = log_.clock + timedelta(seconds=1 + lasts)
            log_.word(log_.decision(gate, arm, outcome={"ended_at": ended}), arm == "candidate", after=lasts)
    assert log_.look(gate).state in ("ready", "promoted")
    certificate = str(log_.sql("SELECT id FROM certificate")[0].id)
    with log_.engine.begin() as connection:
        again = recheck(connection, log_.project, certificate, log_.clock)
    assert (again.holds, again.faults) == (True, ())


def test_another_endpoint_stops_the_gate_and_says_why(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    gate = log_.gate()
    log_.traffic(gate, 5, EQUAL)
    changed = {**log_.pool.content, "beta": {**log_.pool.content["beta"], "endpoint": "another"}}
    with log_.engine.begin() as connection:
        connection.execute(
            text("INSERT INTO pool_snapshot VALUES ('new', cast(:content AS jsonb), now())"),
            {"content": json.dumps(changed)},
        )
    log_.decision(None, "incumbent", pool_hash="new")
    progress = log_.look(gate)
    assert progress.state == "stopped" and "a worker or its endpoint is another one" in progress.reason
    assert log_.sql("SELECT state FROM router_version WHERE id = :id", id=log_.candidate)[0].state == "candidate"


def test_another_incumbent_stops_the_gate(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    gate, other = log_.gate(), log_.version("another")
    log_.decision(None, "incumbent", router_version_id=other, shadow_picks=None)
    progress = log_.look(gate)
    assert progress.state == "stopped" and f"{other} serves now" in progress.reason


def test_a_gate_ends_when_its_days_are_over(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    gate = log_.gate(more={"days": 1})
    log_.traffic(gate, 5, EQUAL)
    assert log_.look(gate).state == "running"
    assert log_.look(gate, after=90_000).reason == "not decided after 5 rows: its days are over"
    assert log_.sql("SELECT state FROM gate")[0].state == "expired"


def test_a_project_has_one_gate_and_each_spends_its_share(synthetic: Callable[..., Any], ana: Any) -> None:
    log_ = synthetic()
    first = log_.gate()
    with pytest.raises(UserError, match=f"gate {first} is running; end it first: pointsman gate stop {first}"):
        log_.gate()
    with log_.engine.begin() as connection:
        stop_gate(connection, ana, log_.project, first, log_.clock, reason="enough")
    with log_.engine.begin() as connection, pytest.raises(UserError, match=f"gate {first} is stopped already"):
        stop_gate(connection, ana, log_.project, first, log_.clock)
    log_.gate()
    shares = [row.alpha for row in log_.sql("SELECT alpha FROM alpha_ledger ORDER BY index")]
    assert shares == pytest.approx([0.025 / 2, 0.025 / 6])


def test_two_processes_do_not_take_one_gate(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    gate = log_.gate()
    with log_.engine.begin() as connection:
        gate_of(connection, log_.project, gate, lock=True)
        assert process_gate(log_.engine, gate, log_.clock) is None


def test_taking_rows_in_many_looks_or_in_one_gives_the_same_numbers(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    gate = log_.gate()
    for n in range(4):
        log_.traffic(gate, 20, EQUAL, seed=n)
        log_.look(gate)
    with log_.engine.begin() as connection:
        again = recompute(connection, gate_of(connection, log_.project, gate))
    last = log_.sql("SELECT log_e FROM gate_row ORDER BY seq DESC LIMIT 1")[0].log_e
    assert (again.rows, again.faults) == (80, ()) and again.log_e == pytest.approx(last, abs=1e-12)
