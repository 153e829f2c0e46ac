"""Off-policy values: exact expectations over every possible draw, refusals, coverage beside the direct method."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.certainty.logs import coverage
from pointsman.errors import NotEvaluable, UserError
from pointsman.statistics.anytime_dr import anytime_interval, lower_path
from pointsman.statistics.off_policy import (
    LoggedChoices,
    deterministic,
    dm_value,
    dr,
    dr_difference,
    dr_values,
    ips,
    snips,
    switch_value,
)
from pointsman.statistics.overlap import effective_sample_size
from pointsman.statistics.ridge import cross_fitted, past_only, ridge

P = np.array([[0.7, 0.2, 0.1], [0.5, 0.5, 0.0]])
MEANS = np.array([[0.2, 0.9, 0.4], [0.6, 0.3, 0.5]])
NEW = np.array([[0.0, 1.0, 0.0], [0.5, 0.5, 0.0]])
OLD = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])


def simulated(n: int = 4_000, seed: int = 1, epsilon: float = 0.4) -> tuple[LoggedChoices, np.ndarray, np.ndarray]:
    """(log, features, target); worker 1 is right where the feature is positive, worker 0 elsewhere."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    p = (1 - epsilon) * deterministic(np.zeros(n, dtype=int), 2) + epsilon / 2
    actions = (rng.random(n) > p[:, 0]).astype(np.int64)
    right = (x[:, 0] > 0) == (actions == 1)
    rewards = (rng.random(n) < np.where(right, 0.9, 0.3)).astype(float)
    return LoggedChoices(p, actions, rewards), x, deterministic((x[:, 0] > 0).astype(int), 2)


@given(st.lists(st.floats(0, 1), min_size=6, max_size=6))
@settings(max_examples=40, deadline=None)
def test_dr_is_unbiased_whatever_the_reward_model(q_values: list[float]) -> None:
    """The expectation over all actions, exactly; and that of the paired difference."""
    q = np.array(q_values).reshape(2, 3)
    value = difference = 0.0
    for actions in product(range(3), range(2)):
        chosen = np.array(actions)
        taken = np.arange(2), chosen
        log = LoggedChoices(P, chosen, MEANS[taken])
        chance = float(np.prod(P[taken]))
        value += chance * dr_values(log, NEW, q).mean()
        difference += chance * dr_values(log, NEW - OLD, q).mean()
    assert value == pytest.approx((NEW * MEANS).sum(axis=1).mean())
    assert difference == pytest.approx(((NEW - OLD) * MEANS).sum(axis=1).mean())


def test_each_estimator_by_hand() -> None:
    log = LoggedChoices(np.tile([0.8, 0.2], (100, 1)), np.arange(100) % 2, np.repeat([1.0, 0.0], 50))
    target = np.tile([0.0, 1.0], (100, 1))
    q = np.tile([0.5, 0.25], (100, 1))
    assert ips(log, target, 0.05).estimate == pytest.approx(25 * 5 / 100)  # 25 rows of reward 1 and weight 5
    with pytest.raises(NotEvaluable):
        snips(LoggedChoices(log.probabilities[:90], log.actions[:90], log.rewards[:90]), target[:90])
    assert snips(log, target).estimate == pytest.approx(25 / 50)
    assert dm_value(target, q) == pytest.approx(0.25)
    assert dr(log, target, q).estimate == pytest.approx(0.25 + 5 * (25 * 0.75 - 25 * 0.25) / 100)
    assert switch_value(log, target, q, threshold=4.9) == pytest.approx(0.25)
    assert switch_value(log, target, q, threshold=5.0) == pytest.approx(dr(log, target, q).estimate)
    assert dr_difference(log, target, 1 - target, q).estimate == pytest.approx(
        -0.25 + (5 * (25 * 0.75 - 25 * 0.25) - 1.25 * (25 * 0.5 - 25 * 0.5)) / 100
    )


def test_the_same_policy_twice_differs_by_nothing_that_a_log_could_show() -> None:
    log, _, target = simulated(500)
    with pytest.raises(NotEvaluable, match=r"500 logged rows are worth 0\.0 rows"):
        dr_difference(log, target, target, np.zeros((500, 2)))


def test_intervals_hold_the_truth_and_narrow_with_the_reward_model() -> None:
    log, x, target = simulated()
    q = cross_fitted(np.sign(x), log.actions, log.rewards, 2, np.random.default_rng(2))
    blunt, sharp = dr(log, target, np.zeros((4_000, 2))), dr(log, target, q)
    for interval in (ips(log, target), snips(log, target), blunt, sharp):
        assert interval.low < 0.9 < interval.high, interval
    assert sharp.high - sharp.low < 0.8 * (blunt.high - blunt.low)
    gain = dr_difference(log, target, deterministic(np.zeros(4_000, dtype=int), 2), q)
    assert gain.low < 0.3 < gain.high and gain.method == "paired DR"


def test_the_episode_is_the_unit() -> None:
    """Each row five times over is no more evidence: the same interval, not a narrower one."""
    log, _, target = simulated(800)
    q = np.full((800, 2), 0.5)
    once = dr(log, target, q)
    again = np.repeat(np.arange(800), 5)
    fivefold = LoggedChoices(
        log.probabilities[again], log.actions[again], log.rewards[again], [f"e{row}" for row in again]
    )
    assert dr(fivefold, target[again], q[again]) == once
    blind = LoggedChoices(fivefold.probabilities, fivefold.actions, fivefold.rewards)
    careless = dr(blind, target[again], q[again])
    assert careless.high - careless.low < 0.5 * (once.high - once.low)


def test_mass_where_the_log_never_went_is_refused() -> None:
    log = LoggedChoices(P.repeat(100, axis=0), np.zeros(200, dtype=np.int64), np.ones(200))
    beyond = np.array([[1.0, 0.0, 0.0], [0.5, 0.0, 0.5]]).repeat(100, axis=0)
    with pytest.raises(NotEvaluable, match=r"not evaluable; explore: in 100 of 200 rows .* \(0\.250 of its mass\)"):
        ips(log, beyond)
    with pytest.raises(NotEvaluable, match="never possible in the log"):
        dr_difference(log, beyond, NEW.repeat(100, axis=0), np.zeros((200, 3)))
    with pytest.raises(NotEvaluable, match="never possible in the log"):
        lower_path(log, beyond, np.zeros((200, 3)), 0.05, 0.1)


def test_too_small_an_effective_sample_is_refused() -> None:
    log = LoggedChoices(np.tile([0.99, 0.01], (400, 1)), (np.arange(400) < 4).astype(np.int64), np.ones(400))
    with pytest.raises(NotEvaluable, match=r"400 logged rows are worth 4\.0 rows of this policy .* 50 are needed"):
        dr(log, deterministic(np.ones(400, dtype=int), 2), np.zeros((400, 2)))
    assert effective_sample_size(np.array([2.0, 2.0, 0.0])) == pytest.approx(2)
    assert effective_sample_size(np.zeros(3)) == 0


@pytest.mark.parametrize(
    ("probabilities", "actions", "rewards", "message"),
    [
        ([[0.5, 0.4]], [0], [1.0], "logged probabilities: expected rows over workers that sum to 1"),
        ([[0.0, 1.0]], [0], [1.0], "a logged action has probability 0"),
        ([[0.5, 0.5]], [0], [1.5], "rewards: expected values from 0 to 1, got 1.5"),
        ([[0.5, 0.5]], [0], [1.0, 1.0], "expected one probability vector, action and reward per row"),
    ],
)
def test_a_log_that_cannot_be_is_refused(probabilities, actions, rewards, message: str) -> None:
    with pytest.raises(UserError, match=message):
        LoggedChoices(np.array(probabilities), np.array(actions), np.array(rewards))


def test_ridge_solves_its_normal_equations() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(50, 3))
    y = 2 + x @ np.array([1.0, -1.0, 0.5])
    coefficients, intercept = ridge(x, y, penalty=1e-9)
    assert coefficients == pytest.approx([1, -1, 0.5], abs=1e-6) and intercept == pytest.approx(2)
    shrunk, _ = ridge(x, y, penalty=50)
    assert np.linalg.norm(shrunk) < np.linalg.norm(coefficients)


def test_a_cross_fitted_row_does_not_see_its_own_episode() -> None:
    rng = np.random.default_rng(4)
    x, actions = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    rewards = rng.random(60)
    episodes = [f"e{row // 3}" for row in range(60)]
    before = cross_fitted(x, actions, rewards, 2, np.random.default_rng(5), episodes=episodes)
    changed = rewards.copy()
    changed[:3] = 1 - changed[:3]
    after = cross_fitted(x, actions, changed, 2, np.random.default_rng(5), episodes=episodes)
    assert (before[:3] == after[:3]).all() and (before[3:] != after[3:]).any()
    with pytest.raises(UserError, match="expected at least 5 episodes, got 2"):
        cross_fitted(x, actions, rewards, 2, rng, episodes=["a", "b"] * 30)


def test_a_past_only_model_never_looks_ahead() -> None:
    rng = np.random.default_rng(6)
    x, actions, rewards = rng.normal(size=(100, 2)), rng.integers(0, 3, 100), rng.random(100)
    before = past_only(x, actions, rewards, 3, blocks=10)
    after = past_only(x, actions, np.where(np.arange(100) < 50, rewards, 1 - rewards), 3, blocks=10)
    assert (before[:60] == after[:60]).all() and (before[60:] != after[60:]).any()
    assert (before[:10] == 0.5).all()


def test_a_worker_that_was_never_chosen_is_given_the_mean() -> None:
    rng = np.random.default_rng(7)
    found = past_only(rng.normal(size=(40, 2)), np.zeros(40, dtype=np.int64), np.full(40, 0.25), 2, blocks=2)
    assert found[20:] == pytest.approx(0.25)


def test_the_anytime_bound_is_valid_at_every_moment_and_pays_where_exploration_is_aimed() -> None:
    rng, ever_above, lows = np.random.default_rng(8), 0, {0.05: [], 0.5: []}
    for _ in range(60):
        n = 1_500
        for share, found in lows.items():
            p = np.tile([1 - share, share], (n, 1))
            actions = (rng.random(n) < share).astype(np.int64)
            rewards = (rng.random(n) < np.where(actions == 1, 0.8, 0.6)).astype(float)
            log = LoggedChoices(p, actions, rewards)
            q = past_only(np.zeros((n, 1)), actions, rewards, 2)
            path = lower_path(log, deterministic(np.ones(n, dtype=int), 2), q, 0.05, share)
            ever_above += (path > 0.8).any()
            found.append(path[-1])
    assert ever_above / 120 <= 0.05 + 3 * (0.05 * 0.95 / 120) ** 0.5
    assert 0.45 < np.mean(lows[0.05]) < np.mean(lows[0.5]) < 0.8
    assert np.mean(lows[0.5]) > 0.7


def test_the_anytime_interval_has_two_sides_and_checks_its_floor() -> None:
    log, _, target = simulated(2_000)
    q = np.full((2_000, 2), 0.5)
    found = anytime_interval(log, target, q, 0.05, p_min=0.2)
    assert found.low < 0.9 < found.high and 0 < found.low < found.estimate < found.high <= 1
    with pytest.raises(UserError, match=r"some logged probabilities are below p_min = 0\.3"):
        lower_path(log, target, q, 0.05, 0.3)


def test_dr_covers_where_the_direct_method_does_not() -> None:
    found = coverage(200, 2_000, 0.2, np.random.default_rng(9))
    assert 0.95 - 3 * (0.05 * 0.95 / 200) ** 0.5 <= found.dr <= 0.99
    assert 0.95 - 3 * (0.05 * 0.95 / 200) ** 0.5 <= found.dr_difference <= 0.99
    assert found.dm <= 0.5
