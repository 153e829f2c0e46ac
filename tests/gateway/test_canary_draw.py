"""The draw under a gate: the vector is the exact mixture, arms are drawn once and kept, explored rows have none."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from scipy.stats import chisquare

from harness.gateway.canary import Arms, Mixed, arm_uniform, drawn_again, may_differ, mixed_draw
from harness.gateway.episodes import Episode
from pointsman.errors import BrokenInvariant
from pointsman.words import GateArm

INCUMBENT = {"alpha": 2.0, "beta": 1.0, "gamma": 0.0}
CANDIDATE = {"alpha": 0.0, "beta": 1.0, "gamma": 1.0}  # beta and gamma tie
SECRET = b"a secret of the project"


def draws(n: int, epsilon: float, rho: float, kept: GateArm | None = None, seed: int = 3) -> list[Mixed]:
    rng = random.Random(seed)
    return [
        mixed_draw(INCUMBENT, CANDIDATE, epsilon=epsilon, rho=rho, arm_at=rng.random(), kept=kept, rng=rng)
        for _ in range(n)
    ]


def test_the_vector_is_the_mixture_of_epsilon_rho_and_ties() -> None:
    vector = draws(1, 0.3, 0.25)[0].draw.probabilities
    assert vector == pytest.approx({"alpha": 0.1 + 0.7 * 0.75, "beta": 0.1 + 0.7 * 0.125, "gamma": 0.1 + 0.7 * 0.125})
    assert sum(vector.values()) == pytest.approx(1)


@pytest.mark.parametrize("kept", [None, "candidate", "incumbent"])
def test_frequencies_match_the_logged_vector(kept: GateArm | None) -> None:
    n = 20_000
    made = draws(n, 0.3, 0.25, kept)
    vector = made[0].draw.probabilities
    counts = Counter(mixed.draw.chosen for mixed in made)
    possible = [name for name in vector if vector[name] > 0]
    found = chisquare([counts[name] for name in possible], [n * vector[name] for name in possible])
    assert found.pvalue > 1e-4
    assert set(counts) == set(possible)


def test_of_the_disagreements_that_were_not_explored_rho_go_to_the_candidate() -> None:
    arms = Counter(mixed.arm for mixed in draws(20_000, 0.3, 0.25))
    assert arms["candidate"] + arms["incumbent"] == pytest.approx(14_000, abs=300)
    assert arms["candidate"] / (arms["candidate"] + arms["incumbent"]) == pytest.approx(0.25, abs=0.015)


def test_explored_draws_have_no_arm_and_are_uniform() -> None:
    explored = [mixed for mixed in draws(6_000, 0.5, 0.25) if mixed.draw.explored]
    assert {mixed.arm for mixed in explored} == {None}
    assert chisquare(list(Counter(mixed.draw.chosen for mixed in explored).values())).pvalue > 1e-4


def test_the_arm_decides_which_pick_is_taken() -> None:
    for mixed in draws(500, 0.0, 0.5):
        assert mixed.draw.chosen == (mixed.candidate if mixed.arm == "candidate" else mixed.incumbent)
        assert mixed.fresh


def test_where_the_picks_are_one_no_arm_is_drawn() -> None:
    rng = random.Random(1)
    mixed = mixed_draw(INCUMBENT, INCUMBENT, epsilon=0, rho=0.5, arm_at=0.1, kept=None, rng=rng)
    assert (mixed.arm, mixed.draw.chosen, mixed.draw.probabilities["alpha"]) == (None, "alpha", 1.0)
    assert not may_differ(INCUMBENT, {**INCUMBENT, "alpha": 9.0})


def test_a_kept_arm_has_probability_one_among_the_arms() -> None:
    vector = draws(1, 0.0, 0.25, kept="incumbent")[0].draw.probabilities
    assert vector == {"alpha": 1.0, "beta": 0.0, "gamma": 0.0}
    made = draws(50, 0.0, 0.25, kept="candidate")
    assert {mixed.arm for mixed in made} == {"candidate"} and not any(mixed.fresh for mixed in made)


def test_a_stored_row_is_drawn_again_from_its_uniforms() -> None:
    for mixed in draws(200, 0.3, 0.25):
        assert drawn_again(INCUMBENT, CANDIDATE, 0.3, 0.25, mixed.draw.draw, None) == mixed


def test_the_arms_uniform_is_the_same_everywhere_and_uniform_over_episodes() -> None:
    assert arm_uniform(SECRET, "g", "e") == arm_uniform(SECRET, "g", "e")
    assert arm_uniform(SECRET, "g", "e") != arm_uniform(b"another", "g", "e")
    bins = Counter(int(arm_uniform(SECRET, "gate", f"episode {n}") * 20) for n in range(10_000))
    assert set(bins) == set(range(20)) and chisquare(list(bins.values())).pvalue > 1e-4


async def test_arms_are_remembered_and_looked_up_for_known_conversations_only() -> None:
    asked: list[tuple[str, str]] = []

    async def lookup(gate: str, episode: str) -> GateArm | None:
        asked.append((gate, episode))
        return "candidate" if episode == "old" else None

    arms = Arms(lookup)
    assert await arms.find("g", Episode("new", "new")) is None
    assert await arms.find("g", Episode("old", "inferred")) == "candidate"
    assert await arms.find("g", Episode("old", "inferred")) == "candidate"
    assert asked == [("g", "old")]
    arms.keep("g", "new", "incumbent")
    assert await arms.find("g", Episode("new", "new")) == "incumbent"
    assert await arms.find("another gate", Episode("new", "new")) is None


def test_scorings_of_different_workers_are_a_fault_of_ours() -> None:
    with pytest.raises(BrokenInvariant, match="two scorings of the same workers"):
        mixed_draw({"a": 1.0}, {"b": 1.0}, epsilon=0, rho=0.5, arm_at=0, kept=None, rng=random.Random(1))
