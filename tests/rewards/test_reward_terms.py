"""The reward of one outcome and of a full-information row: tables of what is known and what follows."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointsman.config import load_text
from pointsman.errors import ConfigError, UserError
from pointsman.rewards.reward import Ended, Terms, priced_anew, reward, rewards_of_row
from pointsman.rewards.spec import RewardSpec, spec_of
from pointsman.rewards.words import Word

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
PLAIN = RewardSpec()
PRICED = RewardSpec(cost_weight=0.25, cost_scale=Decimal("0.01"), latency_weight=0.25, latency_scale=10)
WORKER = '[[workers]]\nname = "a"\ndescription = "x"\nmodel = "m"\nbase_url = "http://127.0.0.1:1/v1"\n'


def ended(status="ok", *, arm="a", worker="a", **more):
    return Ended(status, arm, worker, NOW, **more)


def word(metric="correct", value=True, source="person", **more):
    return Word(more.pop("id", f"{metric}-{value}-{source}"), metric, value, source, NOW, **more)


@pytest.mark.parametrize(
    ("outcome", "words", "value", "source", "reason"),
    [
        (ended(score=0.5), [], 0.5, "verifier", None),
        (ended(score=0.0), [word()], 0.0, "verifier", None),  # what is most trusted is the quality
        (ended(), [word()], 1.0, "feedback", None),
        (ended(judge=0.25), [word(value=False)], 0.0, "feedback", None),
        (ended(judge=0.25), [], 0.25, "judge", None),
        (ended(), [], None, None, "unknown"),
        (ended(), [word("comment", None)], None, None, "unknown"),
        (ended("client_cancelled"), [], None, None, "unknown"),
        (ended("abandoned"), [], None, None, "unknown"),
        (ended("client_cancelled"), [word(value=False)], 0.0, "feedback", None),
        (ended("upstream_error", worker=None), [], 0.0, None, "upstream_error"),
        (ended("timeout", worker=None), [word()], 0.0, None, "timeout"),
        (ended("truncated"), [word()], 0.0, None, "truncated"),
        (ended(worker="b", score=1.0), [], 0.0, "verifier", "fallback"),
        (ended(worker="b"), [], 0.0, None, "fallback"),
    ],
)
def test_value_source_and_reason(outcome, words, value, source, reason):
    made = reward(outcome, words, PLAIN)
    assert (made.value, made.source, made.reason) == (value, source, reason)
    assert made.judge_units is (source == "judge")


@pytest.mark.parametrize(
    ("outcome", "skill"),
    [
        (ended(score=0.5), 0.5),
        (ended(worker="b", score=1.0), 1.0),  # the worker that answered did well; the intended one did not answer
        (ended(worker="b"), None),
        (ended("upstream_error", worker=None), None),
        (ended("timeout", score=None), None),
        (ended("truncated"), None),
    ],
)
def test_an_outage_says_nothing_of_skill(outcome, skill):
    assert reward(outcome, [], PLAIN).skill == skill


@pytest.mark.parametrize(
    ("cost", "seconds", "value", "reason"),
    [
        ("0", 0.0, 1.0, None),
        ("0.01", 10.0, 1 / 1.5, None),
        ("5", 500.0, 1 / 1.5, None),  # as bad as it gets
        ("0.005", 5.0, 1.25 / 1.5, None),
        (None, 5.0, None, "no_cost"),
        ("0.005", None, None, "no_latency"),
    ],
)
def test_cost_and_latency_are_taken_from_quality_and_never_guessed(cost, seconds, value, reason):
    made = reward(ended(score=1.0, cost=cost and Decimal(cost), seconds=seconds), [], PRICED)
    assert made.value == (value if value is None else pytest.approx(value))
    assert made.reason == reason
    unpriced = reward(ended(score=1.0, cost=cost and Decimal(cost), seconds=seconds), [], PLAIN)
    assert unpriced.value == 1.0


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.decimals(0, 1, places=4), st.floats(0, 100)), min_size=2, max_size=2),
    st.floats(0, 5),
    st.floats(0, 5),
)
def test_rewards_stay_in_bounds_and_order_as_the_penalised_quality_does(pair, cost_weight, latency_weight):
    spec = RewardSpec(cost_weight=cost_weight, latency_weight=latency_weight)
    values, penalised = [], []
    for quality, cost, seconds in pair:
        values.append(reward(ended(score=quality, cost=cost, seconds=seconds), [], spec).value)
        penalty = cost_weight * min(float(cost) / 0.01, 1) + latency_weight * min(seconds / 10, 1)
        penalised.append(quality - penalty)
    assert all(0 <= value <= 1 for value in values)
    if abs(penalised[0] - penalised[1]) > 1e-9:
        assert (values[0] > values[1]) is (penalised[0] > penalised[1])


def test_a_row_is_scored_by_what_every_worker_of_it_has():
    row = [ended(score=1.0, judge=0.2, cost=Decimal("0.01")), ended(judge=0.9, worker="b", arm="b")]
    made = rewards_of_row(row, PRICED)
    assert [one.source for one in made] == ["judge", "judge"]  # the verifier's score would enter one arm alone
    assert [one.value for one in made] == [0.2, 0.9]  # and so would the cost
    both = rewards_of_row([ended(score=1.0, judge=0.2), ended(score=0.0, judge=0.9)], PLAIN)
    assert [(one.value, one.source) for one in both] == [(1.0, "verifier"), (0.0, "verifier")]
    neither = rewards_of_row([ended(score=1.0), ended()], PLAIN)
    assert [(one.value, one.reason) for one in neither] == [(None, "unknown")] * 2


def test_a_worker_that_gave_no_answer_earns_nothing_and_takes_no_term_away():
    made = rewards_of_row([ended(score=0.7), ended("upstream_error"), ended("timeout")], PLAIN)
    assert [(one.value, one.skill) for one in made] == [(0.7, 0.7), (0.0, None), (0.0, None)]


def test_costs_can_be_priced_anew():
    before = reward(ended(score=1.0, cost=Decimal("0.01"), seconds=0.0), [], PRICED)
    after = priced_anew(before, Decimal("0"), PRICED)
    assert before.value == pytest.approx(1.25 / 1.5) and after.value == pytest.approx(1.0)
    assert after.terms.cost == 0 and after.terms.verifier == 1.0
    unknown = priced_anew(before, None, PRICED)
    assert (unknown.value, unknown.reason) == (None, "no_cost")
    assert priced_anew(unknown, Decimal("0.01"), PRICED).value == pytest.approx(before.value)
    failed = priced_anew(reward(ended("timeout"), [], PRICED), Decimal("1"), PRICED)
    assert (failed.value, failed.reason) == (0.0, "timeout")
    fallback = priced_anew(
        reward(ended(worker="b", score=1.0, cost=Decimal(1), seconds=0), [], PRICED), Decimal(0), PRICED
    )
    assert (fallback.value, fallback.skill) == (0.0, pytest.approx(1.0))


def test_terms_round_trip():
    terms = Terms(0.5, None, 0.25, Decimal("0.0000123"), 1.5)
    assert terms.to_json() == {"verifier": 0.5, "judge": 0.25, "cost": "0.0000123", "seconds": 1.5}
    assert Terms.from_json(terms.to_json()) == terms


def test_a_spec_is_versioned_by_its_content():
    assert PLAIN.hash == RewardSpec().hash == RewardSpec.from_json(PLAIN.content).hash
    assert PRICED.hash == RewardSpec.from_json(PRICED.content).hash
    assert PRICED.hash == RewardSpec(**{**vars_of(PRICED), "cost_scale": Decimal("0.0100")}).hash
    others = [RewardSpec(name="other"), RewardSpec(deadline=0), RewardSpec(quality=("judge",)), PRICED]
    assert len({spec.hash for spec in (PLAIN, *others)}) == 5


def vars_of(spec):
    return {name: getattr(spec, name) for name in spec.__dataclass_fields__}


def test_specs_come_from_the_configuration():
    text = """
[reward.careful]
quality = ["verifier", "feedback"]
metrics = { stars = 2, correct = 1 }
sources = { person = 0.5 }
ranges = { stars = [1, 5] }
cost_weight = 0.1
deadline = 0
"""
    spec = spec_of(load_text(text + WORKER), "careful")
    assert spec.quality == ("verifier", "feedback") and spec.metrics == {"stars": 2, "correct": 1}
    assert spec.ranges == {"stars": (1, 5)} and (spec.cost_weight, spec.deadline) == (0.1, 0)
    assert RewardSpec.from_json(spec.content).hash == spec.hash
    assert spec_of(load_text(WORKER)).hash == spec_of(None).hash == PLAIN.hash
    with pytest.raises(UserError, match=r"no reward spec 'x', expected one of careful, default"):
        spec_of(load_text(text + WORKER), "x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[reward.x]\nranges = { stars = [3, 3] }", "reward.x: ranges.stars: expected two different numbers"),
        ("[reward.x]\nquality = []", "reward.x.quality: list should have at least 1 item"),
        ("[reward.x]\nquality = ['price']", "reward.x.quality[0]: input should be 'verifier', 'feedback' or 'judge'"),
        ("[reward.x]\ncost_weight = -1", "reward.x.cost_weight"),
        ("[reward.x]\nweights = {}", "reward.x.weights: no such key"),
        ("[judge]\nworker = 'b'", "judge.worker: \"b\" is no worker, expected one of ['a']"),
        ("[audit]\nrate = 2", "audit.rate"),
    ],
)
def test_faults_of_the_configuration(text, message):
    with pytest.raises(ConfigError) as caught:
        load_text(f"{text}\n{WORKER}")
    assert message in str(caught.value)
