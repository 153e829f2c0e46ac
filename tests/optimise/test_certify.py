"""Certificates: they refuse what they must, and are seldom wrong where nothing is better."""

from __future__ import annotations

import numpy as np
import pytest

from harness.optimise.candidate import Candidate
from harness.optimise.certify import certify
from harness.optimise.evaluate import Routed
from harness.optimise.rows import PLAIN, Row, Rows
from harness.routing.base import Ask
from pointsman.errors import UserError

OLD, NEW = Candidate({"a": "x", "b": "y"}, "old"), Candidate({"a": "x", "b": "y"}, "new")


class Fixed:
    """An evaluator whose candidates always choose one worker."""

    def __init__(self, **choice):
        self._choice = choice

    def routed(self, candidate, rows):
        return Routed(np.tile(self._choice[candidate.instructions], (len(rows), 1)), (None,) * len(rows))


def rows_of(rewards, again=None, episodes=None):
    rewards = np.asarray(rewards, dtype=float)
    rows = tuple(
        Row(f"r{n}", episodes[n] if episodes else f"e{n}", Ask(f"t{n}"), float(n)) for n in range(len(rewards))
    )
    return Rows(("a", "b"), rows, rewards, np.zeros_like(rewards), "full", again)


def test_a_clear_difference_is_certified_with_its_numbers():
    rewards = np.tile([[1.0, 0.0]], (200, 1))
    made = certify(NEW, OLD, [OLD], 0, rows_of(rewards), Fixed(new=[1.0, 0], old=[0, 1.0]), PLAIN, 0.02)
    assert made.better and made.rows == made.episodes == 200
    assert made.statements[0].numbers["difference"] == 1.0 and made.statements[0].numbers["low"] > 0.8
    assert made.statements[1].numbers == {"epsilon": 0.0, "finalists": 2, "episodes": 200}
    assert made.statements[2].numbers["mean_gap"] == 0.0
    assert made.statements[0].said.startswith("better than the incumbent by at least 0.")


def test_where_nothing_is_better_it_is_seldom_said():
    rng = np.random.default_rng(5)
    wrong = 0
    for _ in range(150):
        rewards = (rng.random((80, 2)) < 0.6).astype(float)
        wrong += certify(NEW, OLD, [], 1, rows_of(rewards), Fixed(new=[1.0, 0], old=[0, 1.0]), PLAIN, 0.1).better
    assert wrong / 150 <= 0.05 + 3 * (0.05 * 0.95 / 150) ** 0.5


def test_episodes_are_the_unit():
    rewards = np.tile([[1.0, 0.0]], (200, 1))
    rows = rows_of(rewards, episodes=[f"e{n // 50}" for n in range(200)])
    made = certify(NEW, OLD, [], 1, rows, Fixed(new=[1.0, 0], old=[0, 1.0]), PLAIN, 0.02)
    assert made.episodes == 4 and not made.better
    assert "not shown to be better" in made.statements[0].said


def test_repeated_rows_give_a_lower_estimate_of_the_gap():
    rng = np.random.default_rng(2)
    first, second = ((rng.random((400, 2)) < [0.9, 0.2]).astype(float) for _ in range(2))
    second[200:] = np.nan
    made = certify(NEW, OLD, [], 1, rows_of(first, second), Fixed(new=[0, 1.0], old=[1.0, 0]), PLAIN, 0.05)
    oracle = made.statements[2].numbers
    assert oracle["repeated_rows"] == 200
    assert 0.5 < oracle["lower_estimate"] < 0.75 < oracle["epsilon"]


def test_what_cannot_be_certified_is_refused():
    empty = rows_of(np.zeros((0, 2)))
    with pytest.raises(UserError, match="every late row repeats a text"):
        certify(NEW, OLD, [], 1, empty, Fixed(new=[1.0, 0], old=[0, 1.0]), PLAIN, 0.05)
    dr = rows_of(np.ones((5, 2)))
    dr = Rows(dr.workers, dr.rows, dr.rewards, dr.costs, "dr")
    with pytest.raises(UserError, match="needs rows that every worker answered"):
        certify(NEW, OLD, [], 1, dr, Fixed(new=[1.0, 0], old=[0, 1.0]), PLAIN, 0.05)


def test_the_best_single_worker_stands_beside_it_for_information():
    rewards = np.tile([[0.5, 1.0]], (200, 1))
    made = certify(NEW, OLD, [], 1, rows_of(rewards), Fixed(new=[0.4, 0.6], old=[1.0, 0]), PLAIN, 0.02)
    assert made.better and made.beside.worker == "b"
    assert made.beside.difference == pytest.approx(-0.2) and made.beside.high < 0
