"""Numbers as people read them, and text that cannot become Markdown."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from dashboard.palette import GREY, OKABE_ITO, OTHERS, named, worker_scale
from dashboard.ranges import LADDER, MAX_BARS, bucket_for, words
from dashboard.words import dollars, interval, milliseconds, moment, percent, plain, said, summary
from pointsman.queries import Proportion, Word


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (Decimal(0), "$0"),
        (Decimal("0.000113"), "$0.000113"),
        (Decimal("0.04111"), "$0.0411"),
        (Decimal("1.5"), "$1.50"),
        ("12345.6", "$12,346"),
    ],
)
def test_dollars(value, shown):
    assert dollars(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "–"), (0.85, "850 µs"), (1.24, "1.2 ms"), (649.7, "650 ms"), (1405, "1.41 s"), (61000, "61.00 s")],
)
def test_milliseconds(value, shown):
    assert milliseconds(value) == shown


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        (Proportion(0, 0), "–"),
        (Proportion(7, 8), "87.5 %"),
        (Proportion(9999, 10000), "> 99.9 %"),
        (Proportion(1, 10000), "< 0.1 %"),
        (Proportion(4, 4), "100.0 %"),
        (0.0, "0.0 %"),
    ],
)
def test_percent_is_never_rounded_to_certainty(part, shown):
    assert percent(part) == shown


def test_interval():
    assert interval(Proportion(8, 10)) == "49 to 94 %"
    assert interval(Proportion(0, 0)) == "–"


def test_moment_is_utc():
    assert moment("2026-06-15T14:30:00+02:00") == "2026-06-15 12:30:00 UTC"


def test_plain_leaves_no_mark_of_markdown():
    hostile = "![x](http://a.b/c) **b** :red[x] <b> $x$ `c` ~s~ | # h"
    escaped = plain(hostile)
    assert escaped.replace("\\", "") == hostile
    for position, character in enumerate(escaped):
        if character in "![]()*<>$`~|#:/":
            assert escaped[position - 1] == "\\"


def test_values_of_feedback():
    assert [said(value) for value in (True, False, 0.5, "a", {"b": 1})] == ["yes", "no", "0.5", "a", '{"b": 1}']
    assert summary((Word("correct", True), Word("stars", 4))) == "correct: yes, stars: 4"


@pytest.mark.parametrize("hours", [0, 0.5, 1, 24, 24 * 7, 24 * 30])
def test_a_bucket_gives_few_bars(hours):
    span = timedelta(hours=hours)
    assert span <= bucket_for(span) * MAX_BARS
    assert bucket_for(timedelta(days=4000)) == LADDER[-1]


def test_buckets_in_words():
    assert [words(step) for step in LADDER[:2] + LADDER[5:7] + LADDER[-2:]] == [
        "1 minute", "2 minutes", "1 hour", "3 hours", "1 day", "7 days",
    ]  # fmt: skip


def test_a_worker_keeps_its_colour_and_the_eighth_is_one_of_the_others():
    workers = [f"w{number}" for number in range(9)]
    scale = worker_scale(workers, ["w2", named("w8", workers)])
    assert scale.domain == ["w2", OTHERS]
    assert scale.range == [OKABE_ITO[2], GREY]
