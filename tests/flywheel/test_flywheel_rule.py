"""Whether enough has come in: what counts, and how much."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from pointsman.flywheel.rule import Information, information, need


def _new(log_: Any, since: Any = None) -> Information:
    log_.flush()
    with log_.engine.connect() as connection:
        return information(connection, log_.project, since)


def test_a_full_row_counts_one_and_a_drawn_decision_a_share_of_one(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    for _ in range(7):
        log_.asked("audit", {"alpha": 1.0, "beta": 0.0})
    for _ in range(40):
        log_.word(log_.decision(None, "candidate"), True)
    found = _new(log_)
    assert (found.full, found.drawn) == (7, 40)
    assert found.effective == pytest.approx(7 + 40 / 2)  # two workers, even chances: each tells of one of two


def test_rare_draws_make_the_rest_worth_less(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    for _ in range(90):
        log_.word(log_.decision(None, "incumbent", propensity=0.95), True)
    for _ in range(10):
        log_.word(log_.decision(None, "candidate", propensity=0.05), True)
    weights = [1 / (2 * 0.95)] * 90 + [1 / (2 * 0.05)] * 10
    kish = sum(weights) ** 2 / sum(one**2 for one in weights)
    assert _new(log_).drawn_effective == pytest.approx(kish / 2, rel=1e-6)
    assert kish < 22  # of 100


def test_what_tells_nothing_counts_nothing(synthetic: Callable[..., Any]) -> None:
    log_ = synthetic()
    log_.decision(None, "candidate")  # nobody said how it was
    log_.word(log_.decision(None, "candidate", forced="direct"), True)  # not drawn
    log_.word(log_.decision(None, "candidate", probabilities={"beta": 1.0}, propensity=1.0), True)  # no choice
    log_.word(log_.decision(None, "candidate", parent_id=log_.version("a parent")), True)  # inside a team
    assert _new(log_).effective == 0
    log_.word(log_.decision(None, "candidate"), True)
    assert _new(log_).drawn == 1
    assert _new(log_, log_.clock + timedelta(seconds=1)).drawn == 0
    assert information_of_another(log_).effective == 0


def information_of_another(log_: Any) -> Information:
    with log_.engine.connect() as connection:
        return information(connection, log_.version("another project"))


def test_the_first_turn_wants_rows_and_a_later_one_wants_growth() -> None:
    few, many = Information(599, 0, 0.0), Information(500, 300, 100.0)
    assert not need(few, None, 600, 0.5).enough
    assert need(many, None, 600, 0.5).enough
    assert "worth 600 effective rows" in need(many, None, 600, 0.5).why
    assert not need(Information(900, 0, 0.0), 2_000, 600, 0.5).enough
    assert need(Information(1_000, 0, 0.0), 2_000, 600, 0.5).enough
    assert not need(Information(149, 0, 0.0), 10, 600, 0.5).enough  # never less than a quarter of rows
    assert "150 are wanted" in need(Information(149, 0, 0.0), 10, 600, 0.5).why


def test_after_a_change_of_workers_a_quarter_is_enough() -> None:
    some = Information(150, 0, 0.0)
    assert not need(some, 2_000, 600, 0.5).enough
    assert need(some, 2_000, 600, 0.5, changed=True).enough
    assert need(some, 2_000, 600, 0.5, changed=True).why.startswith("workers have changed since the last turn")
    assert not need(some, None, 600, 0.5, changed=True).enough  # there was no last turn
