"""Krippendorff's α against the worked examples of "Computing Krippendorff's Alpha-Reliability" (2011)."""

from __future__ import annotations

import pytest

from pointsman.statistics.agreement import krippendorff


def units(*observers):
    """Rows of words per observer, `.` where one said nothing, as words per unit."""
    rows = [row.split() for row in observers]
    return [[word for word in column if word != "."] for column in zip(*rows, strict=True)]


@pytest.mark.parametrize(
    ("observers", "alpha", "words"),
    [
        # section A: binary data, two observers, no missing data
        (("0 1 0 0 0 0 0 0 1 0", "1 1 1 0 0 1 0 0 0 0"), 0.095, 20),
        # section B: nominal data, two observers, no missing data
        (("a a b b d c c c e d d a", "b a b b b c c c e d d d"), 0.692, 24),
        # section C: nominal data, four observers, missing data
        (
            (
                "1 2 3 3 2 1 4 1 2 . . .",
                "1 2 3 3 2 2 4 1 2 5 . 3",
                ". 3 3 3 2 3 4 2 2 5 1 .",
                "1 2 3 3 2 4 4 1 2 5 1 .",
            ),
            0.743,
            40,
        ),
    ],
)
def test_published_examples(observers, alpha, words):
    found = krippendorff(units(*observers))
    assert found.alpha == pytest.approx(alpha, abs=0.0005)
    assert found.words == words


def test_perfect_agreement_is_one():
    assert krippendorff([["a", "a"], ["b", "b"], ["a", "a", "a"]]).alpha == 1


def test_what_cannot_vary_says_nothing():
    assert krippendorff([]).alpha is None
    assert krippendorff([["a"], ["b"]]).alpha is None  # nobody was judged twice
    assert krippendorff([["a", "a"], ["a", "a"]]).alpha is None  # one word alone
