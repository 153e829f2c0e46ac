"""What a search needs: halving, paired intervals, finalists, oracle, the α ledger, episodes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointsman.errors import UserError
from pointsman.statistics.alpha_ledger import AlphaLedger, spending
from pointsman.statistics.episodes import episode_means, episode_numbers, paired_bootstrap
from pointsman.statistics.finalists import within_best
from pointsman.statistics.halving import plan, sequential_halving
from pointsman.statistics.off_policy import deterministic
from pointsman.statistics.oracle import distance_bound, distance_lower, policy_values, utility
from pointsman.statistics.paired import differences, paired_interval, paired_lower_bound, paired_p_value


def hard_items(rng: np.random.Generator, items: int, means: np.ndarray) -> np.ndarray:
    """Scores [candidates, items]: half of the items are as hard for everyone, the others are own luck."""
    shared, own = rng.random(items), rng.random((len(means), items))
    return (np.where(rng.random(items) < 0.5, shared, own) < means[:, None]).astype(float)


@pytest.mark.parametrize(
    ("candidates", "budget", "items", "expected"),
    [
        (16, 800, 1_000, [(16, 12), (8, 25), (4, 51), (2, 102)]),
        (5, 60, 1_000, [(5, 4), (3, 6), (2, 11)]),
        (4, 400, 60, [(4, 50), (2, 10)]),
        (1, 10, 20, [(1, 10)]),
    ],
)
def test_the_plan_halves_under_its_budget(candidates: int, budget: int, items: int, expected: list) -> None:
    found = plan(candidates, budget, items)
    assert found == expected
    assert sum(alive * new for alive, new in found) <= budget and sum(new for _, new in found) <= items


def test_halving_finds_the_best_on_the_same_items_and_asks_no_more_than_planned() -> None:
    table = np.tile(np.arange(8)[:, None] / 10, (1, 50))
    asked: list[tuple[tuple[int, ...], tuple[int, ...]]] = []

    def evaluate(candidates, items):
        asked.append((tuple(candidates), tuple(items)))
        return table[np.ix_(candidates, items)]

    found = sequential_halving(evaluate, 8, 50, 240, np.random.default_rng(1))
    assert found.winner == 7 and found.ranking == (7, 6, 5, 4, 3, 2, 1, 0)
    assert [len(candidates) for candidates, _ in asked] == [8, 4, 2]
    assert sum(len(candidates) * len(items) for candidates, items in asked) == found.evaluations <= 240
    seen = [item for _, items in asked for item in items]
    assert len(seen) == len(set(seen))


def test_halving_regrets_less_than_an_even_split_and_pairing_less_than_none() -> None:
    """Regret in true mean, 16 candidates, budget 800 (the design has .0250, .0177 paired and .0221 unpaired)."""
    rng, regrets = np.random.default_rng(2), np.zeros((400, 3))
    for row in regrets:
        means = rng.normal(0.75, 0.03, 16)
        paired, unpaired = hard_items(rng, 204, means), (rng.random((16, 204)) < means[:, None]).astype(float)
        picks = [sequential_halving(of(scores), 16, 204, 800, rng).winner for scores in (paired, unpaired)]
        row[:] = means.max() - means[[*picks, int(paired[:, :50].mean(axis=1).argmax())]]
    halved, without, even = regrets.mean(axis=0)
    assert halved < 0.9 * without and halved < 0.8 * even
    assert 0.01 < halved < 0.025


def of(scores: np.ndarray):
    return lambda candidates, items: scores[np.ix_(candidates, items)]


def test_halving_refuses_a_budget_that_cannot_ask_everyone() -> None:
    with pytest.raises(UserError, match="8 candidates need a budget of at least one item each, got 7"):
        plan(8, 7, 100)
    with pytest.raises(UserError, match=r"expected scores of shape \(2, 4\), got \(4,\)"):
        sequential_halving(lambda c, i: np.zeros(len(i)), 2, 10, 8, np.random.default_rng(1))


def test_pairing_narrows_and_the_bound_holds_the_truth() -> None:
    rng = np.random.default_rng(3)
    both = hard_items(rng, 400, np.array([0.70, 0.85]))
    found = paired_interval(both[1], both[0], 0.05, horizon=400)
    assert 0 < found.low < both[1].mean() - both[0].mean() < found.high
    shuffled = paired_interval(rng.permutation(both[1]), both[0], 0.05, horizon=400)
    assert found.high - found.low < 0.9 * (shuffled.high - shuffled.low)
    lower = paired_lower_bound(both[1], both[0], 0.05, horizon=400)
    assert found.low < lower.low < lower.estimate and lower.high == 1
    assert paired_p_value(both[1], both[0]) < 0.001 and paired_p_value(both[0], both[1]) == 1.0


def test_a_paired_p_value_below_alpha_and_a_bound_above_zero_are_one_statement() -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        new, old = (rng.random(150) < 0.75).astype(float), (rng.random(150) < 0.6).astype(float)
        assert (paired_p_value(new, old, 0.05) <= 0.05) == (paired_lower_bound(new, old, 0.05).low >= -1e-9)


def test_the_winner_among_equals_is_not_certified_on_fresh_items() -> None:
    """The winner's curse is gone: chosen on one set, certified on another."""
    rng, wrong, reps = np.random.default_rng(5), 0, 200
    for _ in range(reps):
        searched, fresh = (hard_items(rng, 100, np.full(10, 0.7)) for _ in range(2))
        chosen = int(searched.mean(axis=1).argmax())
        wrong += paired_lower_bound(fresh[chosen], fresh[0], 0.05, horizon=100).low > 0 and chosen != 0
    assert wrong / reps <= 0.05 + 3 * (0.05 * 0.95 / reps) ** 0.5


def test_the_distance_to_the_best_finalist_holds_at_every_choice() -> None:
    rng, wrong, reps = np.random.default_rng(6), 0, 150
    means = np.array([0.6, 0.65, 0.7])
    for _ in range(reps):
        table = (rng.random((250, 3)) < means).astype(float)
        found = within_best(table, 0, 0.1, horizon=250)
        wrong += found.epsilon < 0.1
        assert found.margins[0] == 0 and found.epsilon == max(found.margins)
    assert wrong / reps <= 0.1 + 3 * (0.1 * 0.9 / reps) ** 0.5
    assert found.n == 250 and found.means == pytest.approx(table.mean(axis=0))


def test_finalists_share_alpha_and_one_alone_is_the_best() -> None:
    table = (np.random.default_rng(7).random((200, 4)) < 0.5).astype(float)
    two, four = within_best(table[:, :2], 0), within_best(table, 0)
    assert four.margins[1] > two.margins[1]
    assert within_best(table[:, :1], 0).epsilon == 0
    with pytest.raises(UserError, match="hold finalist 4, got shape"):
        within_best(table, 4)


def test_the_oracle_is_bounded_from_both_sides() -> None:
    """Worker a is right on kind a at .9 and elsewhere at .4: the oracle's value is .9, the policy's known."""
    rng, above, below, reps = np.random.default_rng(8), 0, 0, 120
    for _ in range(reps):
        kinds = rng.integers(0, 3, 300)
        chances = np.where(np.arange(3) == kinds[:, None], 0.9, 0.4)
        runs = [(rng.random((300, 3)) < chances).astype(float) for _ in range(2)]
        picks = deterministic(np.where(rng.random(300) < 0.8, kinds, (kinds + 1) % 3), 3)
        above += distance_bound(runs[0], picks, horizon=300).high >= 0.1
        below += distance_lower(*runs, picks, alpha=0.1).low <= 0.1
    assert above / reps >= 0.95 and below / reps >= 0.9


def test_luck_alone_shows_a_distance_from_above_and_none_from_below() -> None:
    rng = np.random.default_rng(9)
    runs = [(rng.random((1_000, 4)) < 0.5).astype(float) for _ in range(2)]
    always = deterministic(np.zeros(1_000, dtype=int), 4)
    assert distance_bound(runs[0], always).estimate == pytest.approx(1 - 0.5**4 - 0.5, abs=0.05)
    lower = distance_lower(*runs, always)
    assert lower.low < 0 < lower.high and abs(lower.estimate) < 0.03
    assert policy_values(runs[0], always) == pytest.approx(runs[0][:, 0])


def test_utilities_trade_reward_against_cost() -> None:
    assert utility([1, 1, 0], [0.0, 0.02, 0.0], price=10, cap=0.02) == pytest.approx([1, 1 / 1.2, 0.2 / 1.2])
    assert utility([0.5], [99], price=0, cap=1) == pytest.approx([0.5])
    with pytest.raises(UserError, match="expected a price of 0 or more and a cap above 0, got -1 and 1"):
        utility([1], [1], -1, 1)


def test_a_life_of_releases_spends_alpha() -> None:
    ledger, spent = AlphaLedger(0.05, "pool-a"), 0.0
    for _ in range(200):
        certification, ledger = ledger.open_certification()
        spent += certification
    for _ in range(3):
        live, ledger = ledger.enter_canary()
        spent += live
    assert certification == pytest.approx(0.025 / (200 * 201)) and live == pytest.approx(0.025 / 12)
    assert ledger.spent == pytest.approx(spent) and spent < 0.05
    assert AlphaLedger.from_json(json.loads(json.dumps(ledger.to_json()))) == ledger


def test_candidates_that_never_reach_a_canary_cost_it_nothing_and_a_new_pool_starts_over() -> None:
    ledger = AlphaLedger(0.05, "a")
    for _ in range(365):
        _, ledger = ledger.open_certification()
    assert ledger.enter_canary()[0] == pytest.approx(0.0125)
    assert ledger.restarted("a") is ledger
    assert ledger.restarted("b").open_certification()[0] == pytest.approx(0.0125)
    with pytest.raises(UserError, match="expected an index of 1 or more, got 0"):
        spending(0.05, 0)


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0, 1)), min_size=1, max_size=40))
@settings(max_examples=40, deadline=None)
def test_episode_means_are_those_of_each_episode(rows: list[tuple[int, float]]) -> None:
    names = [f"e{name}" for name, _ in rows]
    found = episode_means([value for _, value in rows], names)
    order = list(dict.fromkeys(names))
    for name, mean in zip(order, found, strict=True):
        assert mean == pytest.approx(np.mean([value for other, value in rows if f"e{other}" == name]))
    assert episode_numbers(names).max() == len(order) - 1


def test_episodes_must_be_given_for_every_row() -> None:
    with pytest.raises(UserError, match=r"expected one per row \(3\), got 2"):
        episode_means([1, 2, 3], ["a", "b"])
    assert differences([1, 0.5], [0, 0.5], ["a", "a"]) == pytest.approx([0.5])


def test_the_bootstrap_covers_and_repeats_with_its_seed() -> None:
    rng, covered = np.random.default_rng(10), 0
    for _ in range(150):
        means = rng.beta(2, 2, 60).repeat(4)  # four rows of an episode share their mean
        new = (rng.random(240) < means).astype(float)
        found = paired_bootstrap(new, np.full(240, 0.3), rng, episodes=np.arange(240) // 4, draws=300)
        covered += found.low <= 0.2 <= found.high
    assert found.n == 60 and covered / 150 >= 0.87
    first, second = (paired_bootstrap([1, 0, 1], [0, 0, 0], np.random.default_rng(1)) for _ in range(2))
    assert first == second
