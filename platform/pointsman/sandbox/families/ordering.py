"""Exam: putting things in order."""

from __future__ import annotations

from random import Random

from pointsman.sandbox.families.base import NOUNS, Asked, family, listed, number, text


def _numbers(rng: Random, count: int | None = None) -> tuple[list[int], dict[str, str]]:
    values = rng.sample(range(-50, 999), count or rng.randint(5, 8))
    return values, {"xs": ", ".join(map(str, values))}


def _words(rng: Random) -> tuple[list[str], dict[str, str]]:
    words = rng.sample(NOUNS, rng.randint(4, 6))
    return words, {"ws": ", ".join(words)}


def ascending(rng: Random) -> Asked:
    values, fields = _numbers(rng)
    return fields, listed(sorted(values))


def descending(rng: Random) -> Asked:
    values, fields = _numbers(rng)
    return fields, listed(sorted(values, reverse=True))


def alphabetical(rng: Random) -> Asked:
    words, fields = _words(rng)
    return fields, listed(sorted(words))


def backwards_alphabetical(rng: Random) -> Asked:
    words, fields = _words(rng)
    return fields, listed(sorted(words, reverse=True))


def third(rng: Random) -> Asked:
    words, fields = _words(rng)
    return fields, text(sorted(words)[2])


def second_largest(rng: Random) -> Asked:
    values, fields = _numbers(rng)
    return fields, number(sorted(values)[-2])


def middle(rng: Random) -> Asked:
    values, fields = _numbers(rng, 7)
    return fields, number(sorted(values)[3])


FAMILY = family(
    "ordering",
    {
        "Sort these numbers from smallest to largest: {xs}": ascending,
        "Put these words in alphabetical order: {ws}": alphabetical,
        "{xs} - biggest first, please": descending,
        "Which comes third when {ws} are listed from A to Z?": third,
        "{ws}: a to z?": alphabetical,
    },
    {
        "{xs} -> low to high": ascending,
        "What is the second largest of {xs}?": second_largest,
        "Reverse alphabetical, please: {ws}": backwards_alphabetical,
        "Line these up, z before a: {ws}": backwards_alphabetical,
        "Which value sits in the middle once {xs} are arranged by size?": middle,
    },
)
