"""Thresholds, judges, change, canaries, the mix of inputs, inverse gap weighting."""

from __future__ import annotations

import json
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.certainty.falls import early_alarms, median_delay
from benchmarks.certainty.judges import coverage
from benchmarks.certainty.thresholds import violations
from pointsman.errors import UserError
from pointsman.statistics.canary import CanarySet, tolerance
from pointsman.statistics.change import FallDetector, detector_paths
from pointsman.statistics.input_mix import auc, input_mix_test, logistic
from pointsman.statistics.inverse_gap import inverse_gap
from pointsman.statistics.judged import ppi_mean, verified_rewards
from pointsman.statistics.threshold import cheap_threshold, clopper_pearson_upper, least_routed


@pytest.mark.parametrize(
    ("failures", "n", "upper"),
    [(0, 10, 0.2589), (1, 20, 0.2161), (5, 100, 0.1023), (10, 10, 1.0), (0, 59, 0.0495)],  # tables of exact limits
)
def test_clopper_pearson_is_that_of_the_tables(failures: int, n: int, upper: float) -> None:
    assert float(clopper_pearson_upper(failures, n, 0.05)) == pytest.approx(upper, abs=1e-4)


def test_clopper_pearson_is_exact_by_its_definition() -> None:
    """At the bound, k or fewer failures have probability δ."""
    from scipy.special import bdtr

    for failures, n in ((0, 7), (3, 40), (17, 60)):
        bound = float(clopper_pearson_upper(failures, n, 0.1))
        assert bdtr(failures, n, bound) == pytest.approx(0.1)


def test_the_walk_ends_at_the_first_threshold_that_is_not_certified() -> None:
    scores = np.repeat([0.9, 0.7, 0.5, 0.3], 200)
    failed = np.concatenate([np.arange(200) < k for k in (2, 4, 100, 0)])
    found = cheap_threshold(scores, failed, 0.1, grid=[0.9, 0.7, 0.5, 0.3], least=50)
    assert (found.value, found.routed, found.failures) == (0.7, 400, 6)
    assert found.upper == pytest.approx(float(clopper_pearson_upper(6, 400, 0.05))) and found.cheap_share == 0.5
    nothing = cheap_threshold(scores, np.ones(800), 0.1)
    assert (nothing.value, nothing.cheap_share, nothing.upper) == (None, 0.0, 1.0)


def test_a_walk_that_starts_with_a_handful_of_rows_stops_at_once() -> None:
    rng, early, rule = np.random.default_rng(1), 0.0, 0.0
    for _ in range(60):
        scores = rng.random(2_000)
        failed = rng.random(2_000) < 0.2 * (1 - scores) + 0.04
        grid = np.linspace(0, 1, 101)
        early += cheap_threshold(scores, failed, 0.1, grid=grid, least=20).cheap_share
        rule += cheap_threshold(scores, failed, 0.1, grid=grid).cheap_share
    assert rule / 60 > 3 * early / 60
    assert least_routed(0.1, 0.05) == 114


@pytest.mark.parametrize("n", [600, 2_000])
def test_a_certified_threshold_violates_its_limit_no_oftener_than_delta(n: int) -> None:
    found = violations(250, n, 0.1, 0.05, np.random.default_rng(2))
    assert found.certified <= 0.05 + 3 * (0.05 * 0.95 / 250) ** 0.5
    assert found.naive > 0.35
    assert 0.6 * found.oracle_share < found.cheap_share < found.oracle_share


def test_a_tolerated_rate_must_be_one() -> None:
    with pytest.raises(UserError, match="tolerated failure rate must lie between 0 and 1, got 1"):
        cheap_threshold([0.5], [0], 1.0)


def test_ppi_by_hand() -> None:
    y, j, others = np.array([1.0, 0, 1, 0]), np.array([0.8, 0.2, 0.6, 0.4]), np.array([0.5, 0.7])
    weight = np.cov(y, j)[0, 1] / ((1 + 4 / 2) * j.var(ddof=1))
    found = ppi_mean(y, j, others)
    assert found.estimate == pytest.approx(weight * 0.6 + (y - weight * j).mean())
    half = 1.959964 * np.sqrt(weight**2 * others.var(ddof=1) / 2 + (y - weight * j).var(ddof=1) / 4)
    assert found.high - found.estimate == pytest.approx(half)


def test_without_others_or_with_a_judge_that_never_varies_ppi_is_the_plain_mean() -> None:
    y = np.array([1.0, 0, 1, 1])
    for judge, others in ((np.array([0.1, 0.9, 0.2, 0.4]), []), (np.full(4, 0.5), [0.5, 0.5, 0.5])):
        assert ppi_mean(y, judge, others).estimate == pytest.approx(0.75)
    with pytest.raises(UserError, match="expected two or more labelled rows, each with a judgement, got 1 and 1"):
        ppi_mean([1], [1], [1])


def test_ppi_covers_where_the_judge_does_not_and_is_narrower_than_labels() -> None:
    found = coverage(500, 200, 4_000, np.random.default_rng(3))
    assert abs(found.ppi - 0.95) <= 3 * (0.05 * 0.95 / 500) ** 0.5
    assert found.judge < 0.56 and found.ppi_width < 0.8 * found.labels_width


def test_verified_rewards_are_unbiased_row_by_row() -> None:
    judge, truth, rate = np.array([0.8, 0.3]), np.array([1.0, 0.0]), np.array([0.25, 0.5])
    seen = verified_rewards(judge, truth, [True, True], rate)
    unseen = verified_rewards(judge, [np.nan, np.nan], [False, False], rate)
    assert rate * seen + (1 - rate) * unseen == pytest.approx(truth)
    with pytest.raises(UserError, match="the rate of verification must lie above 0 and at most at 1"):
        verified_rewards(judge, truth, [True, True], [0.0, 0.5])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50))
@settings(max_examples=50, deadline=None)
def test_the_detector_is_the_sum_over_every_possible_start(x: list[float]) -> None:
    """M_t = Σ_s Π_{i ≥ s} (1 + λ(m₀ − X_i)), averaged over the bets."""
    detector = FallDetector.start(0.7)
    for value in x:
        detector.observe(value)
    total = 0.0
    for bet in (0.1, 0.25, 0.5, 1.0):
        factors = [1 + bet * (0.7 - value) for value in x]
        total += sum(np.prod(factors[start:]) for start in range(len(x))) / 4
    assert detector.log_e == pytest.approx(log(total))
    assert detector_paths(np.array([x]), 0.7)[0, -1] == pytest.approx(total)


def test_a_detector_put_away_as_json_goes_on_and_its_alarm_stays() -> None:
    fresh = FallDetector.from_json(json.loads(json.dumps(FallDetector.start(0.85).to_json())))
    assert fresh == FallDetector.start(0.85) and fresh.to_json()["log_m"] == [None] * 4
    for value in [1.0] * 20 + [0.0] * 40:
        fresh.observe(value)
    alarmed = fresh.alarmed_at
    assert alarmed is not None and 20 < alarmed < 45
    again = FallDetector.from_json(json.loads(json.dumps(fresh.to_json())))
    assert again == fresh and again.observe(1.0) and again.alarmed_at == alarmed


def test_delays_and_early_alarms_are_those_of_the_design() -> None:
    """Median delays 306, 111, 48 from .85 to .80, .75, .65; 3.5% alarm by 500 without a fall, none with slack."""
    for after, delay in ((0.80, 306), (0.75, 111), (0.65, 48)):
        assert median_delay(after, 200, np.random.default_rng(4)) == pytest.approx(delay, rel=0.25)
    assert early_alarms(600, 500, np.random.default_rng(5)) <= 0.07
    assert early_alarms(600, 500, np.random.default_rng(5), usual=0.82) <= 0.01


@pytest.mark.parametrize(
    ("usual", "length", "message"),
    [(0.0, 100, "the usual mean must lie above 0"), (0.5, 1, "the run length must be above 1, got 1")],
)
def test_a_detector_that_cannot_be_is_refused(usual: float, length: float, message: str) -> None:
    with pytest.raises(UserError, match=message):
        FallDetector.start(usual, length)


def canary_days(shift: float, days: int, seed: int, delta: float | None = None) -> list[bool]:
    """Alarms by day of a set of 100 items whose success chances fall by `shift` from the third day on."""
    rng = np.random.default_rng(seed)
    chances = rng.choice([0.05, 0.95, 0.6], 100)
    canary = CanarySet.enrol((rng.random((100, 5)) < chances[:, None]).astype(float))
    canary.delta = canary.delta if delta is None else delta
    return [
        canary.observe((rng.random(100) < np.clip(chances - shift * (day >= 2), 0, 1)).astype(float))
        for day in range(days)
    ]


def test_a_silent_change_is_found_within_days_and_no_change_is_not() -> None:
    found = [canary_days(0.25, 12, seed) for seed in range(30)]
    waits = [alarms.index(True) - 2 if True in alarms else 99 for alarms in found]
    assert min(waits) >= 0 and np.median(waits) <= 4 and np.mean([wait < 10 for wait in waits]) >= 0.9
    assert np.mean([canary_days(0.0, 200, seed)[-1] for seed in range(40)]) <= 0.1


def test_without_tolerance_one_lucky_enrolment_alarms_in_the_end() -> None:
    assert np.mean([canary_days(0.0, 200, seed, delta=0.0)[-1] for seed in range(20)]) > 0.5


def test_a_canary_set_is_a_sum_over_starts_and_survives_json() -> None:
    canary = CanarySet.enrol([[1.0, 1.0], [0.0, 1.0]], run_length=50)
    assert canary.stored == [1.0, 0.5]
    assert canary.delta == tolerance([[1.0, 1.0], [0.0, 1.0]]) == pytest.approx(2.5758 * np.sqrt(0.5 / 2) / 2, rel=1e-4)
    canary = CanarySet.from_json(json.loads(json.dumps(canary.to_json())))
    days = ([0.0, 0.0], [1.0, 0.0])
    for scores in days:
        canary.observe(scores)
    falls = [np.prod([1 + 0.5 * (s - x - canary.delta) for s, x in zip((1, 0.5), day, strict=True)]) for day in days]
    assert canary.down[-1] == pytest.approx(log(falls[0] * falls[1] + falls[1]))


def test_canary_scores_must_fit_the_set() -> None:
    with pytest.raises(UserError, match="expected scores of two or more runs of every item"):
        CanarySet.enrol([[1.0], [0.0]])
    with pytest.raises(UserError, match="expected 2 scores, one per item"):
        CanarySet.enrol([[1.0, 1.0], [0.0, 0.0]]).observe([1.0])


def test_the_input_mix_test_keeps_its_level_and_sees_a_shift() -> None:
    rng, false, found = np.random.default_rng(6), 0, 0
    for _ in range(150):
        reference = rng.normal(size=(200, 5))
        false += input_mix_test(reference, rng.normal(size=(150, 5)), rng, alpha=0.05).changed
        moved = rng.normal(size=(150, 5)) + np.array([0.8, 0, 0, 0, 0])
        found += input_mix_test(reference, moved, rng, alpha=0.05).changed
    assert false / 150 <= 0.05 + 3 * (0.05 * 0.95 / 150) ** 0.5
    assert found / 150 >= 0.9
    with pytest.raises(UserError, match="expected at least 40 rows each, got 200 and 39"):
        input_mix_test(np.zeros((200, 1)), np.zeros((39, 1)), rng)


def test_auc_counts_pairs_with_ties_halved() -> None:
    rng = np.random.default_rng(7)
    low, high = rng.integers(0, 6, 30).astype(float), rng.integers(2, 8, 20).astype(float)
    pairs = (high[:, None] > low).mean() + (high[:, None] == low).mean() / 2
    assert auc(low, high) == pytest.approx(pairs)


def test_logistic_regression_is_at_its_optimum() -> None:
    rng = np.random.default_rng(8)
    x = rng.normal(size=(400, 2)) * [1, 10]
    y = (rng.random(400) < 1 / (1 + np.exp(-(x[:, 0] - 0.1 * x[:, 1] + 0.5)))).astype(float)
    weights = logistic(x, y, penalty=1e-6)
    chance = 1 / (1 + np.exp(-(x @ weights[:2] + weights[2])))
    assert np.column_stack([x, np.ones(400)]).T @ (y - chance) == pytest.approx(np.zeros(3), abs=1e-3)


def test_inverse_gap_weighting_by_hand_and_at_its_ends() -> None:
    found = inverse_gap(np.array([[0.9, 0.7, 0.4]]), gamma=10)
    assert found[0] == pytest.approx([1 - 1 / 5 - 1 / 8, 1 / 5, 1 / 8])
    assert inverse_gap(np.array([[0.9, 0.7]]), gamma=0)[0] == pytest.approx([0.5, 0.5])
    masked = inverse_gap(np.array([[0.9, 0.7, 0.4]]), 10, np.array([[False, True, True]]))
    assert masked[0] == pytest.approx([0, 1 - 1 / 5, 1 / 5])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0, 1_000))
@settings(max_examples=60, deadline=None)
def test_inverse_gap_weights_are_a_distribution_whose_best_has_at_least_its_share(q: list[float], gamma: float) -> None:
    found = inverse_gap(np.array([q]), gamma)[0]
    assert found.sum() == pytest.approx(1) and (found > 0).all()
    assert found[int(np.argmax(q))] >= 1 / len(q) - 1e-12


def test_inverse_gap_weighting_refuses_what_is_no_choice() -> None:
    with pytest.raises(UserError, match="gamma must be 0 or more, got -1"):
        inverse_gap(np.zeros((1, 2)), -1)
    with pytest.raises(UserError, match="a row has no eligible worker"):
        inverse_gap(np.zeros((1, 2)), 1, np.zeros((1, 2), dtype=bool))
