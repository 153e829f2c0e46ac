"""Betting confidence sequences: against a slow reading of the formula, an independent implementation, simulation."""

from __future__ import annotations

import json
from math import log, log1p, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.certainty.means import DISTRIBUTIONS, ever_missed, mean_width
from pointsman.errors import UserError
from pointsman.statistics.bounded_mean import betting_interval, log_capital, lower_bound, upper_bound
from pointsman.statistics.sequence import BettingSequence

WEYL = (np.arange(1, 401) * 0.6180339887498949) % 1
RARE = ((np.arange(1, 401) * 7) % 10 == 0).astype(float)

values = st.lists(st.floats(0, 1, width=32), min_size=1, max_size=60)


def slow_capital(x: list[float], m: float, error: float, horizon: int | None = None) -> float:
    """ln K⁺_n(m), line by line as the paper has it."""
    total, squares, capital = 0.0, 0.0, 0.0
    for i, value in enumerate(x, start=1):
        variance = (0.25 + squares) / i
        spread = i * log(1 + i) if horizon is None else horizon
        stake = min(sqrt(2 * log(1 / error) / (variance * spread)), 0.5 / m)
        capital += log1p(stake * (value - m))
        total += value
        squares += (value - (0.5 + total) / (i + 1)) ** 2
    return capital


@given(values, st.floats(0.01, 0.99), st.sampled_from([None, 10, 500]))
@settings(max_examples=60, deadline=None)
def test_the_capital_is_that_of_the_formula(x: list[float], m: float, horizon: int | None) -> None:
    assert log_capital(x, m, 0.025, horizon)[-1] == pytest.approx(slow_capital(x, m, 0.025, horizon), abs=1e-9)


@pytest.mark.parametrize(
    ("x", "low", "high"),
    [(WEYL, 0.4544454, 0.5465547), (RARE, 0.0513051, 0.1492149)],  # ville 0.1.0, BettingCS(alpha=.05), a grid of 10,000
    ids=["weyl", "rare"],
)
def test_the_interval_is_that_of_an_independent_implementation(x: np.ndarray, low: float, high: float) -> None:
    found = betting_interval(x, 0.05)
    assert (found.low, found.high) == (pytest.approx(low, abs=2e-4), pytest.approx(high, abs=2e-4))
    assert (found.n, found.method) == (400, "betting")


@given(values)
@settings(max_examples=40, deadline=None)
def test_a_lower_bound_is_the_largest_mean_that_was_ever_rejected(x: list[float]) -> None:
    low = float(lower_bound(x, 0.05))
    assert 0 <= low <= 1
    if low > 0:
        assert log_capital(x, low, 0.05).max() >= log(20)
    assert log_capital(x, min(1.0, low + 1e-6), 0.05).max() < log(20)


@given(values, st.floats(0.01, 0.4))
@settings(max_examples=40, deadline=None)
def test_intervals_nest_mirror_and_move_with_their_support(x: list[float], alpha: float) -> None:
    narrow, wide = betting_interval(x, alpha), betting_interval(x, alpha / 2)
    assert wide.low <= narrow.low + 1e-6 and narrow.high <= wide.high + 1e-6
    mirrored = betting_interval([1 - value for value in x], alpha)
    assert mirrored.low == pytest.approx(1 - narrow.high, abs=1e-6)
    moved = betting_interval([10 + 4 * value for value in x], alpha, support=(10, 14))
    assert (moved.low, moved.high) == (
        pytest.approx(10 + 4 * narrow.low, abs=1e-5), pytest.approx(10 + 4 * narrow.high, abs=1e-5),
    )  # fmt: skip


def test_many_sequences_at_once_are_each_alone() -> None:
    x = np.random.default_rng(3).random((5, 80))
    assert lower_bound(x, 0.05) == pytest.approx([float(lower_bound(row, 0.05)) for row in x])
    assert upper_bound(x, 0.05) == pytest.approx([float(upper_bound(row, 0.05)) for row in x])


def test_bets_made_for_a_known_size_are_narrower_there() -> None:
    x = (np.random.default_rng(4).random(300) < 0.8).astype(float)
    growing, fixed = betting_interval(x, 0.05), betting_interval(x, 0.05, horizon=300)
    assert fixed.high - fixed.low < 0.9 * (growing.high - growing.low)


@given(values)
@settings(max_examples=30, deadline=None)
def test_the_growing_sequence_holds_the_exact_interval_within_its_grid(x: list[float]) -> None:
    growing = BettingSequence.start(0.05, points=200)
    for value in x:
        growing.observe(value)
    exact, found = betting_interval(x, 0.05), growing.interval
    assert exact.low - 1 / 200 - 1e-6 <= found.low <= exact.low + 1e-6
    assert exact.high - 1e-6 <= found.high <= exact.high + 1 / 200 + 1e-6
    assert found.estimate == pytest.approx(np.mean(x))


def test_a_sequence_put_away_as_json_goes_on_as_if_it_had_not_been() -> None:
    whole, first = BettingSequence.start(), BettingSequence.start()
    for value in WEYL[:50]:
        whole.observe(value)
        first.observe(value)
    again = BettingSequence.from_json(json.loads(json.dumps(first.to_json())))
    for value in WEYL[50:120]:
        whole.observe(value)
        again.observe(value)
    assert again.to_json() == whole.to_json()
    assert again.interval.low > 0.3


def test_a_mean_that_moves_contradicts_itself_in_the_end() -> None:
    moving = BettingSequence.start()
    for value in [0.0] * 300 + [1.0] * 700:
        moving.observe(value)
    assert moving.contradicted


@pytest.mark.parametrize(
    ("x", "alpha", "message"),
    [
        ([0.2, 1.5], 0.05, "values: expected values from 0 to 1, got 1.5"),
        ([0.2, float("nan")], 0.05, "values: expected values from 0 to 1, got nan"),
        ([], 0.05, "values: expected at least one row, got none"),
        ([0.2], 1.0, "alpha: expected a number between 0 and 1, got 1"),
    ],
)
def test_what_cannot_be_bounded_is_refused(x: list[float], alpha: float, message: str) -> None:
    with pytest.raises(UserError, match=message):
        lower_bound(x, alpha)


@pytest.mark.parametrize("name", list(DISTRIBUTIONS))
def test_the_mean_is_missed_no_oftener_than_alpha_at_any_time(name: str) -> None:
    reps = 500
    missed = ever_missed(name, reps, 1_000, np.random.default_rng(11))
    assert missed.betting <= 0.05 + 3 * (0.05 * 0.95 / reps) ** 0.5
    assert missed.peeking >= 0.35


@pytest.mark.parametrize(("name", "width"), [("bernoulli .1", 0.066), ("bernoulli .5", 0.127), ("beta 10, 30", 0.012)])
def test_widths_at_a_thousand_are_those_of_the_design(name: str, width: float) -> None:
    assert mean_width(name, 40, 1_000, np.random.default_rng(12)) == pytest.approx(width, rel=0.2)
