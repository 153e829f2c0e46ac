"""Rows: shapes, utilities, and a split that keeps episodes whole, follows time and leaks no text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from harness.optimise.rows import Objective, Row, Rows, objective_of, split
from harness.routing.base import Ask
from pointsman.errors import UserError


def rows_of(episodes, texts=None, costs=None):
    rows = tuple(
        Row(f"r{n}", episode, Ask(texts[n] if texts else f"request {n}"), float(n))
        for n, episode in enumerate(episodes)
    )
    shape = (len(rows), 2)
    return Rows(
        ("a", "b"), rows, np.tile([1.0, 0.0], (len(rows), 1)), np.full(shape, np.nan) if costs is None else costs
    )


def test_a_split_follows_time_and_keeps_episodes_whole():
    rows = rows_of(["e0", "e1", "e2", "e3", "e3", "e3", "e4", "e5", "e6", "e7"])
    parts = split(rows)
    assert [row.id for row in parts.train.rows] == ["r0", "r1", "r2", "r3", "r4", "r5"]
    assert [row.id for row in parts.validation.rows] == ["r6"]
    assert [row.id for row in parts.certification.rows] == ["r7", "r8", "r9"]


def test_an_episode_belongs_where_it_began():
    parts = split(rows_of(["old", "e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8", "old"]))
    assert [row.id for row in parts.train.rows][:2] == ["r0", "r9"]


def test_a_text_that_the_search_saw_is_not_certified_with():
    texts = [f"request {n}" for n in range(8)] + ["  REQUEST   0 ", "request 9"]
    parts = split(rows_of([f"e{n}" for n in range(10)], texts))
    assert [row.id for row in parts.certification.rows] == ["r7", "r9"]
    assert parts.repeated == 1


def test_spent_rows_are_learned_from_and_never_certified_with_again():
    rows = rows_of([f"e{n}" for n in range(10)])
    assert [row.id for row in split(rows, spent=8.0).certification.rows] == ["r9"]
    assert len(split(rows, spent=9.0).certification) == 0
    assert len(split(rows, spent=2.0).certification) == 3


def test_too_few_rows_and_odd_shares_are_refused():
    with pytest.raises(UserError, match="1 rows are too few for a search"):
        split(rows_of(["e0"]))
    with pytest.raises(UserError, match="three shares above 0 that sum to 1"):
        split(rows_of(["e0", "e1", "e2"]), (0.5, 0.5, 0.0))


def test_utilities_order_as_reward_minus_priced_cost():
    rows = replace(rows_of(["e0"]), costs=np.array([[0.02, 0.01]]))
    objective = objective_of([rows], 30.0)
    assert objective == Objective(30.0, 0.02)
    worth = rows.utilities(objective)
    assert worth == pytest.approx(np.array([[(1 + 0.0) / 1.6, (0 + 30 * 0.01) / 1.6]]))
    assert (worth[0, 0] - worth[0, 1]) * objective.scale == pytest.approx((1 - 30 * 0.02) - (0 - 30 * 0.01))
    assert rows.utilities(Objective()) is rows.rewards


def test_an_unknown_cost_counts_as_the_workers_mean_and_needs_one():
    costs = np.array([[0.02, 0.01], [np.nan, 0.01]])
    rows = replace(rows_of(["e0", "e1"]), costs=costs)
    worth = rows.utilities(Objective(10.0, 0.02))
    assert worth[0, 0] == worth[1, 0]
    with pytest.raises(UserError, match="no cost is known of b: declare its price"):
        replace(rows, costs=np.array([[0.02, np.nan]] * 2)).utilities(Objective(10.0, 0.02))
    with pytest.raises(UserError, match="no cost is known of any worker"):
        objective_of([rows_of(["e0"])], 1.0)
    with pytest.raises(UserError, match="trade-off: expected 0 or more"):
        objective_of([rows], -1.0)


def test_rows_without_every_reward_are_refused():
    with pytest.raises(UserError, match="every worker needs a reward on every row"):
        Rows(("a",), (Row("r", "e", Ask("x"), 0.0),), np.array([[np.nan]]), np.array([[0.0]]))
    with pytest.raises(UserError, match=r"expected rewards and costs of shape \(1, 1\)"):
        Rows(("a",), (Row("r", "e", Ask("x"), 0.0),), np.array([[1.0, 0.0]]), np.array([[0.0]]))


def test_the_hash_names_texts_and_rewards():
    rows = rows_of(["e0", "e1"])
    assert rows.hash == rows_of(["e0", "e1"]).hash
    assert rows.hash != rows.take([1, 0]).hash
    assert rows.hash != replace(rows, rewards=1 - rows.rewards).hash
