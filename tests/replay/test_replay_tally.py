"""The numbers of full-information rows against a plain computation with fractions."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction

import pytest

from pointsman.replay.tally import Tally

ROWS = [
    ("q1", "a", 1.0, Decimal("0.004")),
    ("q1", "b", 0.5, Decimal("0.001")),
    ("q2", "a", 0.25, Decimal("0.004")),
    ("q2", "b", 0.25, Decimal("0.002")),
    ("q2", "b", 0.75, Decimal("0.002")),
]


def tally(rows):
    made = Tally()
    for row in rows:
        made.add(*row)
    return made.numbers()


def test_numbers_of_a_small_table():
    numbers = tally(ROWS)
    assert (numbers.queries, numbers.scored_queries, numbers.outcomes) == (2, 2, 5)
    assert numbers.worker("a").mean_score == 0.625
    assert numbers.worker("b").mean_score == 0.5  # over its three outcomes
    assert numbers.best_single == "a"
    assert numbers.oracle == 0.75  # q2: b's two repeats have the mean 0.5
    assert numbers.random == (0.75 + 0.375) / 2
    assert numbers.worker("a").mean_cost == Decimal("0.004")
    assert numbers.oracle_cost == Decimal("0.003")
    assert numbers.random_cost == Decimal("0.00275")


def test_the_oracle_takes_the_cheapest_of_those_that_tie():
    numbers = tally([("q", "a", 1.0, Decimal(3)), ("q", "b", 1.0, Decimal(2)), ("q", "c", 0.0, Decimal(1))])
    assert numbers.oracle_cost == Decimal(2)


def test_unknown_costs_leave_the_pool_s_costs_unknown():
    numbers = tally([("q", "a", 1.0, Decimal(3)), ("q", "b", 1.0, None)])
    assert (numbers.worker("a").mean_cost, numbers.worker("b").mean_cost) == (Decimal(3), None)
    assert (numbers.oracle_cost, numbers.random_cost) == (None, None)


def test_best_single_answered_every_query():
    numbers = tally([("q1", "lucky", 1.0, None), ("q1", "whole", 0.9, None), ("q2", "whole", 0.1, None)])
    assert numbers.best_single == "whole"
    assert numbers.worker("lucky").queries == 1


def test_ties_go_to_the_first_name():
    assert tally([("q", "b", 0.5, None), ("q", "a", 0.5, None)]).best_single == "a"


def test_queries_without_outcomes_count_in_no_mean():
    made = Tally()
    made.add_query("silent")
    made.add("q", "a", 0.5, None)
    numbers = made.numbers()
    assert (numbers.queries, numbers.scored_queries, numbers.oracle) == (2, 1, 0.5)


def test_nothing_gives_no_numbers():
    numbers = Tally().numbers()
    assert (numbers.queries, numbers.best_single, numbers.oracle, numbers.random) == (0, None, None, None)


def random_rows(seed):
    rng = random.Random(seed)
    return [
        (query, worker, rng.random(), Decimal(rng.randrange(10**7)).scaleb(-10))
        for query in range(40)
        for worker in "abc"
        for _ in range(rng.choice([1, 1, 3]))
    ]


def test_the_order_of_rows_changes_no_bit():
    rows = random_rows(3)
    shuffled = random.Random(4).sample(rows, len(rows))
    assert tally(rows) == tally(shuffled)


@pytest.mark.parametrize("seed", [5, 6])
def test_means_are_those_of_exact_fractions(seed):
    rows = random_rows(seed)
    numbers = tally(rows)
    cells = {}
    for query, worker, score, _ in rows:
        cells.setdefault(query, {}).setdefault(worker, []).append(Fraction(score))
    for worker in "abc":
        scores = [score for query in cells.values() for score in query[worker]]
        assert numbers.worker(worker).mean_score == pytest.approx(float(sum(scores) / len(scores)), abs=1e-15)
    means = [[sum(scores) / len(scores) for scores in query.values()] for query in cells.values()]
    assert numbers.oracle == pytest.approx(float(sum(map(max, means)) / len(means)), abs=1e-15)
    assert numbers.random == pytest.approx(float(sum(sum(m) / 3 for m in means) / len(means)), abs=1e-15)
