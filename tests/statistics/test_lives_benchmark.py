"""The benchmark of whole lives, in small: no promotion without a gain, promotion with a large one, bounds that hold."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def living() -> Iterator[Any]:
    sys.path.insert(0, str(BENCHMARKS))
    import living.drifting
    import living.turns

    yield living
    sys.path.remove(str(BENCHMARKS))


def test_with_nothing_to_gain_hardly_a_life_promotes_and_spends_its_canaries(living):
    lives = living.turns.live(
        living.turns.Life(0.0, certified=False, turns=4, requests=1_500), 100, np.random.default_rng(3)
    )
    assert lives.promoted <= 0.05 + 3 * (0.05 * 0.95 / 100) ** 0.5
    assert (lives.canaries[np.isinf(lives.turn)] == 4).all()


def test_a_large_gain_is_found_in_every_life_and_costs_one_canary_where_it_is_found_at_once(living):
    lives = living.turns.live(
        living.turns.Life(0.06, certified=True, turns=3, requests=5_000), 30, np.random.default_rng(4)
    )
    assert lives.promoted == 1.0
    assert (lives.canaries[lives.turn == 1] == 1).all()


def test_a_drifting_pool_is_followed_within_the_certified_bound(living):
    turns = living.drifting.drift(living.drifting.World(turns=8), np.random.default_rng(5))
    assert np.mean([turn.regret for turn in turns]) < np.mean([turn.kept for turn in turns])
    assert all(turn.regret <= turn.bound for turn in turns)


def test_the_same_seed_tells_the_same_life(living):
    one, other = (living.drifting.drift(living.drifting.World(turns=3), np.random.default_rng(6)) for _ in range(2))
    assert one == other
