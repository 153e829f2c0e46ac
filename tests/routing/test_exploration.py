"""The draw: the logged probabilities are those of the frequencies, and a draw can be made again."""

from __future__ import annotations

import json
import math
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, chisquare

from harness.routing.exploration import Draw, draw, forced, probabilities, replay
from pointsman.errors import BrokenInvariant

SHAPES: dict[str, dict[str, float]] = {
    "one best": {"a": 0.1, "b": 0.9, "c": 0.5},
    "two best": {"a": 0.9, "b": 0.9, "c": 0.5, "d": -3.0},
    "all tied": dict.fromkeys("abcdef", 0.0),
    "two workers": {"a": -1.0, "b": -2.0},
    "log probabilities": {"e": -50.0, "d": -0.01, "c": -7.0, "b": -9.0, "a": -8.0},
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.5, 1.0])
def test_frequencies_match_the_logged_probabilities(shape: str, epsilon: float) -> None:
    scores, rng, drawn = SHAPES[shape], random.Random(shape), 20_000
    logged = probabilities(scores, epsilon)
    draws = [draw(scores, epsilon, rng) for _ in range(drawn)]
    assert all(item.probabilities == logged for item in draws)
    counts = Counter(item.chosen for item in draws)
    possible = [name for name, p in logged.items() if p > 0]
    assert set(counts) <= set(possible)
    if len(possible) > 1:
        result = chisquare([counts[name] for name in possible], [logged[name] * drawn for name in possible])
        assert result.pvalue > 1e-3
    explored = sum(item.explored for item in draws)
    assert explored == epsilon * drawn if epsilon in (0, 1) else binomtest(explored, drawn, epsilon).pvalue > 1e-3


@pytest.mark.parametrize("shape", SHAPES)
def test_a_wrong_vector_would_fail_the_test_above(shape: str) -> None:
    scores, rng = SHAPES[shape], random.Random(shape)
    counts = Counter(draw(scores, 0.2, rng).chosen for _ in range(20_000))
    wrong = probabilities(scores, 0.26)
    if shape != "all tied":
        assert chisquare([counts[name] for name in wrong], [p * 20_000 for p in wrong.values()]).pvalue < 1e-3


def test_explored_decisions_are_spread_evenly_over_all_workers_the_best_included() -> None:
    rng = random.Random(1)
    explored = [item for _ in range(20_000) if (item := draw(SHAPES["one best"], 0.5, rng)).explored]
    assert chisquare(list(Counter(item.chosen for item in explored).values())).pvalue > 1e-3
    assert len({item.chosen for item in explored}) == 3


@pytest.mark.parametrize(
    ("scores", "epsilon", "expected"),
    [
        ({"a": 1.0, "b": 0.0}, 0.05, {"a": 0.975, "b": 0.025}),
        ({"a": 1.0, "b": 0.0}, 0.0, {"a": 1.0, "b": 0.0}),
        ({"a": 1.0, "b": 0.0}, 1.0, {"a": 0.5, "b": 0.5}),
        ({"a": 1.0, "b": 1.0, "c": 0.0, "d": 0.0}, 0.2, {"a": 0.45, "b": 0.45, "c": 0.05, "d": 0.05}),
        ({"a": 0.0, "b": 0.0, "c": 0.0}, 0.3, {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}),
    ],
)
def test_the_mixture(scores: dict[str, float], epsilon: float, expected: dict[str, float]) -> None:
    assert probabilities(scores, epsilon) == pytest.approx(expected, abs=1e-15)


@settings(max_examples=300, deadline=None)
@given(
    scores=st.dictionaries(st.text(min_size=1, max_size=5), st.floats(-1e300, 1e300), min_size=2, max_size=52),
    epsilon=st.floats(0, 1),
    seed=st.integers(),
)
def test_invariants(scores: dict[str, float], epsilon: float, seed: int) -> None:
    made = draw(scores, epsilon, random.Random(seed))
    assert math.fsum(made.probabilities.values()) == pytest.approx(1.0, abs=1e-12)
    assert abs(sum(made.probabilities.values()) - 1) < 1e-12
    assert set(made.probabilities) == set(scores)
    assert min(made.probabilities.values()) >= epsilon / len(scores)
    assert made.probabilities[made.chosen] > 0
    assert made.explored or scores[made.chosen] == max(scores.values())
    assert made.forced is None and len(made.draw) == 2
    assert draw(scores, epsilon, random.Random(seed)) == made
    stored = json.loads(json.dumps({"scores": dict(sorted(scores.items(), reverse=True)), "draw": made.draw}))
    assert replay(stored["scores"], epsilon, stored["draw"]) == made


def test_the_order_of_the_scores_does_not_change_the_draw() -> None:
    forwards = {"a": 1.0, "b": 1.0, "c": 0.0}
    backwards = dict(reversed(forwards.items()))
    for seed in range(200):
        assert draw(forwards, 0.5, random.Random(seed)) == draw(backwards, 0.5, random.Random(seed))


def test_the_last_uniform_below_one_stays_within_the_workers() -> None:
    top = math.nextafter(1.0, 0.0)
    for count in range(2, 53):
        names = [f"w{place:02}" for place in range(count)]
        assert replay(dict.fromkeys(names, 0.0), 0.5, (0.0, top)).chosen == names[-1]


def test_a_single_worker_is_forced_without_a_draw() -> None:
    rng = random.Random(1)
    before = rng.getstate()
    assert draw({"a": -3.0}, 0.5, rng) == Draw({"a": 1.0}, "a", (), False, "only_one")
    assert rng.getstate() == before


@pytest.mark.parametrize("reason", ["sticky", "direct", "only_one"])
def test_forced_choices(reason: str) -> None:
    assert forced("a", reason) == Draw({"a": 1.0}, "a", (), False, reason)  # type: ignore[arg-type]


def test_faults_of_our_own_are_told() -> None:
    rng = random.Random(1)
    with pytest.raises(BrokenInvariant, match="no worker to draw from"):
        draw({}, 0.1, rng)
    with pytest.raises(BrokenInvariant, match="scores must be finite"):
        draw({"a": math.nan, "b": 1.0}, 0.1, rng)
    for epsilon in (-0.1, 1.1, math.nan):
        with pytest.raises(BrokenInvariant, match="epsilon must be from 0 to 1"):
            draw({"a": 0.0, "b": 1.0}, epsilon, rng)
