"""Certificates of a certification set and of the dial, computed again from the log; what speaks against them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sqlalchemy import insert, text

from pointsman.actions.dials import calibrate_dial, turn_off_dial
from pointsman.drift.alarms import About, raise_alarm
from pointsman.drift.watch import settle_dial
from pointsman.errors import NotEvaluable, UserError
from pointsman.ids import new_id
from pointsman.promotion.certify import certificates, proof_of, recheck
from pointsman.promotion.gate_proof import CERTIFICATE
from pointsman.promotion.offline import Evidence, claims, read_known

DIAL = """
[dial]
worker = "beta"
max_failures = 0.2
[reward.default]
quality = ["verifier"]
"""


def certified(log_: Any, better: float = 1.0, n: int = 120) -> list[str]:
    """A set on which beta is right and alpha is wrong, a candidate that picks beta, and its three certificates."""
    rows = [log_.asked("probe", {"alpha": 0.2, "beta": 0.2 + 0.6 * better}) for _ in range(n)]
    log_.flush()
    endpoints = {name: log_.pool.by_name[name].endpoint_hash for name in ("alpha", "beta")}
    policies = np.array([[[0.0, 1.0]] * n, [[1.0, 0.0]] * n])
    evidence = Evidence(tuple(rows), endpoints, policies)
    with log_.engine.begin() as connection:
        made = claims(evidence, read_known(connection, log_.project, evidence, None), 0.05)
        ids = [new_id() for _ in made]
        for identity, claim in zip(ids, made, strict=True):
            connection.execute(
                insert(CERTIFICATE).values(
                    id=identity, project_id=log_.project, claim=claim.claim, router_version_id=log_.candidate,
                    incumbent_id=log_.incumbent, alpha=claim.alpha, method="m", window_start=log_.clock,
                    window_end=log_.clock, assumptions=[], numbers=claim.numbers, data_hash="d",
                    pool_epoch=log_.pool.epoch, evidence=evidence.to_json(), holds=claim.holds,
                    created_at=log_.clock, checked_at=log_.clock,
                )
            )  # fmt: skip
    return ids


def test_the_three_claims_and_their_shares_of_the_error(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    certified(log_)
    with log_.engine.begin() as connection:
        found = {row.claim: row for row in certificates(connection, log_.project)}
        assert proof_of(connection, log_.project, log_.candidate) is not None
        assert proof_of(connection, log_.project, log_.incumbent) is None
    assert {claim: row.alpha for claim, row in found.items()} == {
        "better_than_incumbent": 0.025, "best_of_finalists": 0.0125, "oracle_of_pool": 0.0125,
    }  # fmt: skip
    assert found["better_than_incumbent"].numbers["difference"] == pytest.approx(0.6)
    assert 0.4 < found["better_than_incumbent"].numbers["low"] < 0.6
    assert found["oracle_of_pool"].numbers["mean_gap"] == pytest.approx(0.0)
    assert 0 < found["oracle_of_pool"].numbers["epsilon"] < 0.1


def test_they_come_out_again_and_a_changed_log_does_not(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    better, *_ = ids = certified(log_)
    with log_.engine.begin() as connection:
        assert [recheck(connection, log_.project, one, log_.clock).faults for one in ids] == [(), (), ()]
        connection.execute(text("UPDATE outcome SET score = 0.9 WHERE worker = 'alpha'"))
        again = recheck(connection, log_.project, better, log_.clock)
        assert not again.holds and again.faults[0] == "its numbers do not bear it out any more"
        assert again.numbers["difference"] == pytest.approx(-0.1)
        assert proof_of(connection, log_.project, log_.candidate) is None


def test_rows_that_are_gone_are_said_and_do_not_count_against_it(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    better, *_ = certified(log_)
    with log_.engine.begin() as connection:
        connection.execute(text("DELETE FROM decision WHERE id IN (SELECT id FROM decision LIMIT 3)"))
        again = recheck(connection, log_.project, better, log_.clock)
    assert again.holds and again.numbers is None
    assert again.remarks == ("cannot be computed again: 3 of its 120 rows are not in the log any more",)


def test_another_pool_or_an_alarm_takes_its_ground_away(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    better, *_ = certified(log_)
    log_.decision(None, "incumbent")
    log_.flush()
    with log_.engine.connect() as connection:
        later = log_.clock.replace(year=2027)
        raise_alarm(connection, log_.project, "silent_update", "beta changed", later, About(worker="beta"))
        assert recheck(connection, log_.project, better, later).faults == (
            "an alarm is on since 2027-11-01: beta changed",
        )
        connection.rollback()
    with log_.engine.begin() as connection:
        connection.execute(text("UPDATE certificate SET pool_epoch = 'of other workers'"))
        faults = recheck(connection, log_.project, better, log_.clock).faults
        assert faults == ("the pool has changed since: other workers stand behind the names",)
        with pytest.raises(UserError, match="there is no certificate 'x' here"):
            recheck(connection, log_.project, "x", log_.clock)


def audited(log_: Any, n: int, version: str | None = None, seed: int = 1) -> None:
    """Audited traffic: where the router is surer of beta, beta fails less often."""
    rng = random.Random(seed)
    for _ in range(n):
        sure = rng.random()
        decision = log_.decision(
            None, "incumbent", scores={"alpha": 0.0, "beta": sure}, router_version_id=version or log_.incumbent,
            shadow_picks=None,
        )  # fmt: skip
        request = log_.rows["decision"][-1]["request_id"]
        assert decision
        failed = rng.random() > 0.4 + 0.6 * sure
        log_.asked("audit", {"alpha": 1.0, "beta": float(not failed)}, request=request)
    log_.flush()


def test_a_dial_is_calibrated_with_its_certificate(synthetic: Callable[..., Any], ana: Any) -> None:
    log_ = synthetic(DIAL)
    audited(log_, 500)
    with log_.engine.begin() as connection:
        done = calibrate_dial(connection, ana, log_.project, log_.config, log_.clock, serving=log_.incumbent)
    found = done.threshold
    assert found.n == 500 and found.upper <= 0.2 and found.failures / found.routed < 0.2
    assert 0.4 < found.value < 0.9
    dial = log_.sql("SELECT * FROM dial")[0]
    assert (dial.worker, dial.threshold, str(dial.router_version_id)) == ("beta", found.value, log_.incumbent)
    with log_.engine.begin() as connection:
        again = recheck(connection, log_.project, str(dial.certificate_id), log_.clock)
        assert (again.holds, again.faults) == (True, ())
        assert turn_off_dial(connection, ana, log_.project, log_.clock)
        again = recheck(connection, log_.project, str(dial.certificate_id), log_.clock)
        assert again.faults == ("its dial is retired",)


def test_too_few_rows_or_too_many_failures_certify_nothing(synthetic: Callable[..., Any], ana: Any) -> None:
    log_ = synthetic(DIAL)
    audited(log_, 20)
    with log_.engine.begin() as connection:
        with pytest.raises(NotEvaluable, match=r"20 audited requests .* have a reward; at least 54"):
            calibrate_dial(connection, ana, log_.project, log_.config, log_.clock, serving=log_.incumbent)
        with pytest.raises(UserError, match=r"there is no \[dial\] in the configuration"):
            calibrate_dial(connection, ana, log_.project, synthetic_config(log_), log_.clock, serving=log_.incumbent)
    for _ in range(100):
        log_.decision(None, "incumbent", scores={"alpha": 0.0, "beta": 1.0}, shadow_picks=None)
        log_.asked("audit", {"alpha": 1.0, "beta": 0.0}, request=log_.rows["decision"][-1]["request_id"])
    log_.flush()
    with log_.engine.begin() as connection, pytest.raises(NotEvaluable, match="no threshold is certified"):
        calibrate_dial(connection, ana, log_.project, log_.config, log_.clock, serving=log_.incumbent)


def synthetic_config(log_: Any) -> Any:
    return log_.config.model_copy(update={"dial": None})


def test_a_dial_is_retired_when_its_ground_moves(synthetic: Callable[..., Any], ana: Any) -> None:
    log_ = synthetic(DIAL)
    audited(log_, 300)
    with log_.engine.begin() as connection:
        calibrate_dial(connection, ana, log_.project, log_.config, log_.clock, serving=log_.incumbent)
        assert settle_dial(connection, log_.project, log_.clock) is None
    log_.decision(None, "incumbent", router_version_id=log_.candidate, shadow_picks=None)
    log_.flush()
    with log_.engine.begin() as connection:
        why = settle_dial(connection, log_.project, log_.clock)
    assert why == f"router version {log_.candidate} serves, and it was calibrated for {log_.incumbent}"
    assert log_.sql("SELECT reason FROM dial")[0].reason.endswith("calibrate it again: pointsman dial calibrate")
