"""A turn link by link: what it starts, what it makes of the results, where it ends, and why."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from pointsman.actions.gates import stop_gate
from pointsman.actions.routers import promote
from pointsman.errors import UserError
from pointsman.flywheel.job import look, start
from pointsman.flywheel.store import Turn, locked, turn_of
from pointsman.flywheel.turn import advance, stop
from pointsman.ids import id_at
from pointsman.jobs.store import Jobs


def _states(turn: Turn) -> dict[str, str]:
    return {link.name: link.state for link in turn.links}


def test_a_turn_goes_from_the_log_to_a_promotion_by_the_gate(drive: Callable[..., Any]) -> None:
    one = drive('mode = "auto"\naudit = 5\nbudget = 2\n')
    turn = one.step()
    assert _states(turn) == {"audit": "running"}
    audit = one.jobs()[0]
    assert (audit.kind, audit.params["from_log"], audit.budget, audit.asked_by) == ("audit", 5, 2, "flywheel")
    one.finish(cost=0.5)
    assert one.jobs()[0].kind == "labels"
    turn = one.finish()
    assert [job.params["method"] for job in one.jobs()] == ["mixture"] and one.jobs()[0].params["labels"] == one.LABELS
    one.finish()
    assert [(job.params["kind"], job.params["head"]) for job in one.jobs()] == [
        ("learned", "card"),
        ("learned", "index"),
    ]
    one.finish()
    assert (one.jobs()[0].kind, one.jobs()[0].params["router"]) == ("evolve", one.log.candidate)
    one.finish()
    assert set(one.jobs()[0].params["routers"]) == {one.log.candidate}
    turn = one.finish()
    assert turn.links[-1].name == "shadow" and turn.candidate_id == one.log.candidate
    assert one.log.sql("SELECT state FROM router_version WHERE id = :id", id=one.log.candidate)[0].state == "shadow"
    one.shadow(19)
    assert one.step().links[-1].numbers == {"rows": 19, "otherwise": 19}
    one.shadow(1)
    turn = one.step()
    assert turn.links[-1].name == "canary" and turn.gate_id is not None
    assert one.log.sql("SELECT mode FROM gate")[0].mode == "auto"
    one.log.traffic(turn.gate_id, 200, {"candidate": 0.9, "incumbent": 0.3})
    assert one.log.look(turn.gate_id).state == "promoted"
    turn = one.step()
    assert (turn.state, turn.ended_at is not None) == ("promoted", True)
    assert turn.cost == Decimal("0.5")
    assert [name for name, state in _states(turn).items() if state == "skipped"] == ["traces", "conductor", "grpo"]
    assert [state for state in _states(turn).values() if state != "skipped"] == ["done"] * 8
    assert one.log.sql("SELECT router_version_id AS id FROM promotion")[0].id == UUID(one.log.candidate)
    assert advance(one.log.engine, one.id, one.log.config, one.log.clock) is None


def test_in_mode_propose_a_person_promotes_and_the_turn_ends_with_that(drive: Callable[..., Any], ana: Any) -> None:
    one = drive()
    one.to("shadow")
    one.shadow(20)
    turn = one.step()
    assert turn.gate_id is not None
    one.log.traffic(turn.gate_id, 200, {"candidate": 0.9, "incumbent": 0.3})
    assert one.log.look(turn.gate_id).state == "ready"
    turn = one.step()
    assert (turn.state, turn.ended_at) == ("proposed", None) and "waits for `pointsman promote" in (turn.reason or "")
    with one.log.engine.begin() as connection:
        promote(connection, ana, one.log.project, one.log.candidate, one.log.clock)
    turn = one.step()
    assert (turn.state, turn.reason) == ("promoted", "promoted by ana")


def test_a_candidate_that_is_worse_live_ends_the_turn_refused(drive: Callable[..., Any]) -> None:
    one = drive()
    one.to("shadow")
    one.shadow(20)
    turn = one.step()
    assert turn.gate_id is not None
    one.log.traffic(turn.gate_id, 400, {"candidate": 0.1, "incumbent": 0.9})
    assert one.log.look(turn.gate_id).state == "rolled_back"
    turn = one.step()
    assert turn.state == "refused" and (turn.reason or "").startswith("canary: the candidate is worse")
    assert one.log.sql("SELECT * FROM promotion") == []


def test_a_router_that_does_not_pay_never_reaches_traffic(drive: Callable[..., Any]) -> None:
    one = drive()
    one.to("evaluate")
    turn = one.finish(result=one.evaluation(refused=True))
    assert turn.state == "refused"
    assert turn.reason == "evaluate: no router pays: it is not shown to be better than the best cheap router"
    assert one.log.sql("SELECT * FROM gate") == []


def test_a_shadow_that_never_chooses_otherwise_spends_no_alpha(drive: Callable[..., Any]) -> None:
    one = drive()
    one.to("shadow")
    one.shadow(20, otherwise=False)
    turn = one.step()
    assert turn.state == "refused" and "never chose otherwise" in (turn.reason or "")
    assert one.log.sql("SELECT * FROM alpha_ledger") == []
    assert one.log.sql("SELECT state FROM router_version WHERE id = :id", id=one.log.candidate)[0].state == "candidate"


def test_a_shadow_without_traffic_is_given_up_in_the_end(drive: Callable[..., Any]) -> None:
    one = drive()
    one.to("shadow")
    assert one.step(60).state == "running"
    turn = one.step(24 * 60)
    assert turn.state == "refused" and "no request was seen in 24 hours" in (turn.reason or "")


def test_links_that_may_be_missed_are_missed_with_their_reason(drive: Callable[..., Any]) -> None:
    one = drive()
    one.to("sft")
    turn = one.finish(state="failed", result=None, reason="pip install 'pointsman[distill]'")
    assert turn.links[-1].name == "evaluate"
    told = {link.name: (link.state, link.reason) for link in turn.links}
    assert told["sft"][0] == "failed" and str(told["sft"][1]).startswith(
        "train failed: pip install 'pointsman[distill]'"
    )
    assert told["evolve"] == ("skipped", "there is no learned router with an index head to start from")
    assert told["audit"][0] == "skipped"


def test_a_conductor_is_trained_by_jobs_that_name_each_other(drive: Callable[..., Any]) -> None:
    one = drive('conductor = true\nconductor_base = "tiny"\nbudget = 3\n')
    one.to("traces")
    traces = one.jobs()[0]
    assert (traces.kind, traces.params["source"]) == ("conductor_data", "log")
    one.finish(result={"examples": 120})
    trained = one.jobs()[0]
    assert (trained.params["data"], trained.params["base"]) == (traces.id, "tiny")
    one.finish(result={"learning_rate": 1e-4})
    optimised = one.jobs()[0]
    assert (optimised.kind, optimised.params["start"], optimised.budget) == ("conductor_grpo", trained.id, 3)
    turn = one.finish(state="skipped", result=None, reason="no_signal: every worker is right")
    told = turn.link("grpo")
    assert told is not None and (told.state, told.reason) == (
        "skipped",
        "conductor_grpo skipped: no_signal: every worker is right",
    )
    assert turn.links[-1].name == "evaluate"


def test_evolution_that_does_not_pay_leaves_the_router_it_started_from(drive: Callable[..., Any]) -> None:
    one = drive()
    one.to("evolve")
    one.finish(result={"router_version": None, "from": one.log.candidate})
    turn = one.step()
    told = turn.link("evolve")
    assert told is not None and (told.state, told.reason) == (
        "refused", "it is not shown to be better than what it began from"
    )  # fmt: skip
    assert one.jobs()[0].params["routers"] == [one.log.candidate]  # from mixture and sft; none from evolution


@pytest.mark.parametrize(
    ("ended", "state", "reason"),
    [
        ({"state": "skipped", "reason": "600 requests are wanted"}, "refused", "labels: labels skipped: 600 requests"),
        ({"state": "dead", "reason": "three crashes"}, "failed", "labels: labels dead: three crashes"),
        ({"state": "cancelled", "reason": "cancelled"}, "stopped", "labels: a person cancelled its job"),
    ],
)
def test_without_labels_there_is_no_turn(
    drive: Callable[..., Any], ended: dict[str, Any], state: str, reason: str
) -> None:
    one = drive()
    one.to("labels")
    turn = one.finish(**ended, result=None)
    assert turn.state == state and (turn.reason or "").startswith(reason)


def test_a_crash_between_a_job_and_its_row_starts_no_second_job(drive: Callable[..., Any]) -> None:
    one = drive()
    key = f"flywheel/{one.id}/labels/0"
    before = Jobs(one.log.engine).start(
        "labels", {"toy": True}, project_id=one.log.project, asked_by="flywheel", dedupe_key=key
    )
    one.end(before.id, result={"label_set": one.LABELS})  # it was quick, too
    turn = one.step()
    assert turn.link("labels").jobs == (before.id,)
    assert turn.links[-1].name == "baselines"
    assert [row.n for row in one.log.sql("SELECT count(*) AS n FROM job WHERE kind = 'labels'")] == [1]


def test_one_look_at_a_time(drive: Callable[..., Any]) -> None:
    one = drive()
    with one.log.engine.begin() as connection:
        assert locked(connection, one.id) is not None
        assert advance(one.log.engine, one.id, one.log.config, one.log.clock) is None
    assert one.step().links[-1].name == "labels"


def test_a_turn_waits_for_another_gate(drive: Callable[..., Any], ana: Any) -> None:
    one = drive()
    one.to("shadow")
    other = one.log.version("other")
    one.log.candidate, mine = other, one.log.candidate
    gate = one.log.gate()
    one.log.candidate = mine
    one.shadow(20)
    turn = one.step()
    assert turn.gate_id is None and "one gate at a time" in (turn.links[-1].reason or "")
    with one.log.engine.begin() as connection:
        stop_gate(connection, ana, one.log.project, gate, one.log.clock)
    assert one.step().gate_id is not None


def test_stopping_cancels_jobs_and_gates_and_says_who(drive: Callable[..., Any], ana: Any) -> None:
    one = drive()
    one.to("labels")
    job = one.jobs()[0]
    turn = stop(one.log.engine, ana, one.log.project, one.id, one.log.clock, reason="not now")
    assert (turn.state, turn.reason, turn.links[-1].state) == ("stopped", "not now", "refused")
    assert Jobs(one.log.engine).get(job.id).state == "cancelled"
    with pytest.raises(UserError, match="is stopped already"):
        stop(one.log.engine, ana, one.log.project, one.id, one.log.clock)
    told = one.log.sql("SELECT actor, subject FROM actor_log WHERE action = 'turn_stop'")
    assert [(row.actor, row.subject) for row in told] == [("ana", one.id)]


def test_stopping_in_the_canary_stops_the_gate(drive: Callable[..., Any], ana: Any) -> None:
    one = drive()
    one.to("shadow")
    one.shadow(20)
    assert one.step().gate_id is not None
    stop(one.log.engine, ana, one.log.project, one.id, one.log.clock)
    assert one.log.sql("SELECT state FROM gate")[0].state == "stopped"


def test_a_turn_opens_by_itself_when_enabled_and_enough_has_come(
    synthetic: Callable[..., Any], end: Callable[..., None], quick: str
) -> None:
    log_ = synthetic(quick + "enabled = true\n")
    assert look(log_.engine, log_.project, log_.config, log_.clock)["opened"] is None
    for _ in range(10):
        log_.asked("audit", {"alpha": 1.0, "beta": 0.0})
    log_.flush()
    opened = look(log_.engine, log_.project, log_.config, log_.clock)
    assert opened["turns"][0]["link"] == "labels"
    again = look(log_.engine, log_.project, log_.config, log_.clock + timedelta(minutes=1))
    assert again["opened"] is None and len(again["turns"]) == 1  # it is open
    with log_.engine.connect() as connection:
        job = turn_of(connection, log_.project, opened["opened"]).links[-1].jobs[0]
    end(job, "skipped", None, "too few")
    later = log_.clock + timedelta(minutes=2)
    assert look(log_.engine, log_.project, log_.config, later)["turns"][0]["state"] == "refused"
    assert "less than 24 hours ago" in look(log_.engine, log_.project, log_.config, later)["why"]
    tomorrow = look(log_.engine, log_.project, log_.config, later + timedelta(hours=25))
    assert tomorrow["opened"] is None and "are wanted before a turn pays" in tomorrow["why"]
    workers = [worker.model_copy(update={"model": f"{worker.model}-2"}) for worker in log_.config.workers]
    changed = look(log_.engine, log_.project, log_.config.model_copy(update={"workers": workers}), log_.clock)
    assert "less than 24 hours" in changed["why"]
    for _ in range(3):
        log_.asked("audit", {"alpha": 1.0, "beta": 0.0})
    log_.flush()
    again = log_.config.model_copy(update={"workers": workers})
    assert look(log_.engine, log_.project, again, later + timedelta(hours=26))["why"].startswith("workers have changed")


def test_one_turn_at_a_time_and_none_of_too_little(synthetic: Callable[..., Any], quick: str) -> None:
    log_ = synthetic(quick)
    with log_.engine.begin() as connection:
        nothing = start(connection, log_.project, log_.config, "ana", log_.clock)
        assert not isinstance(nothing, Turn) and "10 are wanted" in nothing.why
        forced = start(connection, log_.project, log_.config, "ana", log_.clock, force=True)
        assert isinstance(forced, Turn) and forced.opened_because.startswith("ana asked for it")
        with pytest.raises(UserError, match=f"turn {forced.id} is running"):
            start(connection, log_.project, log_.config, "ana", log_.clock, force=True)
    with log_.engine.begin() as connection, pytest.raises(UserError, match="there is no turn"):
        turn_of(connection, log_.project, id_at(log_.clock))
