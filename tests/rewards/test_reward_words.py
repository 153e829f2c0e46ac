"""Feedback in numbers: which words stand at a moment, and what they say together."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pointsman.rewards.spec import RewardSpec
from pointsman.rewards.words import Word, opinion, standing

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SPEC = RewardSpec(
    metrics={"correct": 1.0, "stars": 2.0, "score": 1.0, "errors": 1.0},
    sources={"person": 1.0, "robot": 0.5, "spam": 0.0},
    ranges={"stars": (1, 5), "errors": (10, 0)},
)


def word(identity, value=True, minutes=0, **more):
    given = NOON + timedelta(minutes=minutes)
    return Word(identity, more.pop("metric", "correct"), value, more.pop("source", "person"), given, **more)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], None),
        ([word("1")], 1.0),
        ([word("1"), word("2", False)], 0.5),
        ([word("1"), word("2", False, source="robot")], 1 / 1.5),
        ([word("1", source="spam")], None),
        ([word("1", source="somebody")], 1.0),  # a source that is not named weighs 1
        ([word("1", metric="latency", value=True)], None),  # a metric that is not named does not count
        ([word("1", 5, metric="stars")], 1.0),
        ([word("1", 2, metric="stars"), word("2", True)], (2 * 0.25 + 1) / 3),
        ([word("1", 9, metric="stars")], 1.0),
        ([word("1", 0, metric="errors")], 1.0),  # fewer is better
        ([word("1", 10, metric="errors")], 0.0),
        ([word("1", 0.3, metric="score")], 0.3),
        ([word("1", 7, metric="score")], None),  # not from 0 to 1, and no range says what it means
        ([word("1", float("nan"), metric="score")], None),
        ([word("1", "yes")], None),
        ([word("1", None)], None),
    ],
)
def test_opinions(words, expected):
    assert opinion(words, SPEC) == (expected if expected is None else pytest.approx(expected))


def test_amended_and_retracted_words_do_not_stand():
    words = [word("1"), word("2", False, 5, amends="1"), word("3"), word("4", None, 9, amends="3", retracted=True)]
    assert [one.id for one in standing(words)] == ["2"]


def test_what_stood_at_a_moment_does_not_change_later():
    words = [word("1"), word("2", False, 20, amends="1"), word("3", True, 30)]
    assert [one.id for one in standing(words, NOON - timedelta(minutes=1))] == []
    assert [one.id for one in standing(words, NOON + timedelta(minutes=15))] == ["1"]
    assert [one.id for one in standing(words, NOON + timedelta(minutes=20))] == ["2"]
    assert {one.id for one in standing(words)} == {"2", "3"}


def test_one_rater_has_one_word_on_a_metric():
    repeated = [word(str(n), n == 0, n, rater="ann") for n in range(10)]
    others = [word("b", True, 0, rater="bob"), word("k", True, 0, key="key-1"), word("x"), word("y")]
    assert {one.id for one in standing([*repeated, *others])} == {"9", "b", "k", "x", "y"}
    flooded = [word(str(n), False, n, key="key-2") for n in range(100)] + [word("honest", True, rater="ann")]
    assert opinion(standing(flooded), SPEC) == 0.5
