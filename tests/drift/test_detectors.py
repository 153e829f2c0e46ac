"""Detectors over the log: quiet while nothing changes, an alarm when something does, restarts where an arm is new."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

from pointsman.drift.alarms import notify, raise_alarm
from pointsman.drift.canary import observe_day
from pointsman.drift.mix import features, watch_mix
from pointsman.drift.pool import watch_pool
from pointsman.drift.rewards import watch_rewards
from pointsman.drift.state import detector
from pointsman.drift.watch import watch_inputs, watch_workers
from pointsman.rewards.compute import Window, compute_rewards
from pointsman.rewards.spec import RewardSpec

SPEC = RewardSpec(quality=("feedback",), deadline=60)


def served(log_: Any, n: int, chance: float, *, seed: int = 1, worker: str = "alpha") -> None:
    """`n` answers of a worker, good with this chance, with the calls that gave them."""
    rng = random.Random(seed)
    for _ in range(n):
        decision = log_.decision(None, "incumbent", chosen=worker, outcome={"worker": worker}, shadow_picks=None)
        log_.rows["call"].append(
            {"id": decision, "project_id": log_.project, "decision_id": decision, "worker": worker,
             "purpose": "serve", "endpoint_hash": log_.pool.by_name[worker].endpoint_hash,
             "started_at": log_.clock, "status": "ok"}
        )  # fmt: skip
        log_.word(decision, rng.random() < chance)
    log_.flush()


def rewards(log_: Any, **more: Any) -> list[str]:
    """One look at the rewards, as of when everything has closed."""
    now = log_.clock + timedelta(seconds=100)
    endpoints = {name: log_.pool.by_name[name].endpoint_hash for name in ("alpha", "beta")}
    with log_.engine.begin() as connection:
        compute_rewards(connection, SPEC, Window(), now=now, project=log_.project)
        return watch_rewards(connection, log_.project, SPEC.hash, endpoints, now, **more)


def test_a_worker_that_stays_as_it_is_raises_nothing(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    served(log_, 700, 0.8)
    assert rewards(log_) == []
    with log_.engine.begin() as connection:
        row = detector(connection, log_.project, "worker_reward", "alpha")
    assert row.state["detector"]["n"] == 500
    assert 0.65 < row.state["detector"]["usual"] < 0.77


def test_a_fall_is_noticed_once_with_an_alarm_that_names_the_worker(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    served(log_, 300, 0.85)
    assert rewards(log_) == []
    served(log_, 150, 0.45, seed=2)
    (message,) = rewards(log_)
    assert message.startswith("worker alpha: its rewards have fallen below 0.")
    assert rewards(log_) == []
    row = log_.sql("SELECT kind, worker, endpoint_hash, detail FROM alarm")[0]
    assert (row.kind, row.worker) == ("worker_reward", "alpha")
    assert row.detail["detector"]["alarmed_at"] is not None


def test_looking_often_or_once_is_the_same(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    states = []
    for steps in ((250,), (100, 100, 50)):
        with log_.engine.begin() as connection:
            connection.execute(text("TRUNCATE decision, outcome, request, call, feedback, reward, detector"))
        rng_seed = 1
        for n in steps:
            served(log_, n, 1.0, seed=rng_seed)
            rewards(log_, baseline=50)
        with log_.engine.begin() as connection:
            states.append(detector(connection, log_.project, "worker_reward", "alpha").state)
    assert states[0] == states[1] and states[0]["detector"]["n"] == 200


def test_after_an_alarm_was_resolved_a_new_baseline_is_taken(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    served(log_, 100, 0.9)
    rewards(log_, baseline=60)
    served(log_, 100, 0.1, seed=2)
    assert len(rewards(log_, baseline=60)) == 1
    with log_.engine.begin() as connection:
        connection.execute(text("UPDATE alarm SET resolved_at = now()"))
    served(log_, 200, 0.1, seed=3)
    assert rewards(log_, baseline=60) == []
    with log_.engine.begin() as connection:
        assert detector(connection, log_.project, "worker_reward", "alpha").state["detector"]["usual"] < 0.2


def snapshot(log_: Any, worker: str, what: str) -> None:
    """The pool with another endpoint or card of a worker, and a decision by it."""
    changed = {**log_.pool.content, worker: {**log_.pool.content[worker], what: "another"}}
    with log_.engine.begin() as connection:
        connection.execute(
            text("INSERT INTO pool_snapshot VALUES (:hash, cast(:content AS jsonb), now())"),
            {"hash": what, "content": json.dumps(changed)},
        )
    log_.decision(None, "incumbent", pool_hash=what)
    log_.flush()


def test_another_endpoint_starts_a_new_arm_another_card_does_not(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    served(log_, 80, 0.9)
    rewards(log_, baseline=60)
    with log_.engine.begin() as connection:
        assert watch_pool(connection, log_.project, log_.clock) == []
        assert watch_pool(connection, log_.project, log_.clock) == []
    snapshot(log_, "alpha", "card")
    with log_.engine.begin() as connection:
        (message,) = watch_pool(connection, log_.project, log_.clock)
        assert message == "worker alpha has another card: the router reads something else of it"
        assert detector(connection, log_.project, "worker_reward", "alpha") is not None
    snapshot(log_, "alpha", "endpoint")
    with log_.engine.begin() as connection:
        messages = watch_pool(connection, log_.project, log_.clock)
        assert any("worker alpha has another endpoint: its rewards are of another arm" in one for one in messages)
        assert detector(connection, log_.project, "worker_reward", "alpha") is None
    kinds = {row.kind for row in log_.sql("SELECT kind FROM alarm")}
    assert kinds == {"card_changed", "endpoint_changed"}


def day(log_: Any, run: str, score: Callable[[int], float], repeats: int = 2, items: int = 60) -> dict[str, str]:
    for n in range(items):
        log_.asked(
            "probe", {"alpha": score(n), "beta": 0.5}, text=f"task {n}", tags=[f"probe:{run}"], repeats=repeats
        )  # fmt: skip
    log_.flush()
    with log_.engine.begin() as connection:
        return observe_day(connection, log_.project, run, log_.clock)


def test_a_silent_change_of_a_worker_is_noticed_by_its_canary_tasks(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    assert day(log_, "canary-0", lambda n: float(n % 4 > 0)) == {"alpha": "enrolled", "beta": "enrolled"}
    for n in range(1, 4):
        assert set(day(log_, f"canary-{n}", lambda n: float(n % 4 > 0)).values()) == {"well"}
    found = [day(log_, f"later-{n}", lambda n: float(n % 4 > 2))["alpha"] for n in range(3)]
    assert found[-1] == "alarm"
    row = log_.sql("SELECT kind, worker, message FROM alarm")[0]
    assert (row.kind, row.worker) == ("silent_update", "alpha") and "mean 0.25, then 0.75" in row.message


def test_a_day_counts_once_and_needs_its_answers(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    assert "two or more answers" in day(log_, "once", lambda n: 1.0, repeats=1)["alpha"]
    day(log_, "first", lambda n: 1.0)
    with log_.engine.begin() as connection:
        assert observe_day(connection, log_.project, "first", log_.clock)["alpha"] == "taken already"
    assert day(log_, "few", lambda n: 1.0, items=40)["alpha"] == "too few answers"
    assert day(log_, "most", lambda n: 1.0, items=50)["alpha"] == "well"


def requests(log_: Any, texts: list[str]) -> None:
    for words in texts:
        log_.decision(None, "incumbent", shadow_picks=None)
        log_.rows["request"][-1]["text"] = words
    log_.flush()


def test_another_mix_of_requests_is_noticed_and_the_same_is_not(synthetic: Callable[..., Any]) -> None:
    log_, rng = synthetic(), random.Random(4)
    sums = [f"what is {rng.randrange(99)} plus {rng.randrange(99)} please" for _ in range(120)]
    since = log_.clock
    requests(log_, sums)
    with log_.engine.begin() as connection:
        same = watch_mix(connection, log_.project, since, log_.clock, np.random.default_rng(1))
        assert same is not None and not same.changed and same.reference == 60
    requests(log_, [f"translate this letter to French, dear {rng.randrange(99)}" for _ in range(120)])
    with log_.engine.begin() as connection:
        other = watch_mix(connection, log_.project, since, log_.clock, np.random.default_rng(1))
        assert other is not None and other.changed and other.auc > 0.9
        assert watch_inputs(connection, log_.project, log_.clock) == ["another mix of requests (AUC 1.00)"]
    assert [row.kind for row in log_.sql("SELECT kind FROM alarm")] == ["input_mix"]


def test_few_requests_say_nothing_and_features_are_of_words_alone(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    requests(log_, ["a"] * 30)
    with log_.engine.begin() as connection:
        assert (
            watch_mix(connection, log_.project, log_.clock.replace(year=2020), log_.clock, np.random.default_rng(1))
            is None
        )
        assert watch_workers(connection, log_.project, SPEC, log_.clock) == []
    table = features(["Hello there", "hello THERE", ""])
    assert table[0] == pytest.approx(table[1]) and table[2] == pytest.approx(0)
    assert np.linalg.norm(table[0, :-1]) == pytest.approx(1)


def test_an_alarm_is_posted_once_and_again_only_where_it_was_refused(
    synthetic: Callable[..., Any], webhook: Any
) -> None:
    log_ = synthetic()
    with log_.engine.begin() as connection:
        raise_alarm(connection, log_.project, "input_mix", "it changed", log_.clock)
    webhook.status = 500
    assert notify(log_.engine, webhook.url, log_.clock) == (0, 1)
    webhook.status = 204
    assert notify(log_.engine, webhook.url, log_.clock) == (1, 0)
    assert notify(log_.engine, webhook.url, log_.clock) == (0, 0)
    assert [post["alarm"]["message"] for post in webhook.posted] == ["it changed", "it changed"]
    assert webhook.posted[0]["event"] == "pointsman.alarm"
    assert notify(log_.engine, "http://127.0.0.1:9/", log_.clock) == (0, 0)
