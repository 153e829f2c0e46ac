"""Solves questions about order."""

from __future__ import annotations

import re
from collections.abc import Callable

from pointsman.sandbox.solvers.base import Answer, rule

_XS = r"(-?\d+(?:, -?\d+)+)"
_WS = r"([a-z]+(?:, [a-z]+)+)"


def _numbers(match: re.Match[str]) -> list[int]:
    return [int(part) for part in match[1].split(", ")]


def _sorted_numbers(*, falling: bool) -> Callable[[re.Match[str]], Answer]:
    def solve(match: re.Match[str]) -> Answer:
        values = sorted(_numbers(match), reverse=falling)
        return ", ".join(map(str, values)), "list"

    return solve


def _sorted_words(*, falling: bool) -> Callable[[re.Match[str]], Answer]:
    return lambda match: (", ".join(sorted(match[1].split(", "), reverse=falling)), "list")


def _ranked_number(position: Callable[[int], int]) -> Callable[[re.Match[str]], Answer]:
    def solve(match: re.Match[str]) -> Answer:
        values = sorted(_numbers(match))
        index = position(len(values))
        return str(values[index]), "number"

    return solve


def _third_word(match: re.Match[str]) -> Answer:
    words = sorted(match[1].split(", "))
    return words[2], "word", tuple(words)


RULES = (
    rule(rf"from smallest to largest: {_XS}", _sorted_numbers(falling=False)),
    rule(rf"in alphabetical order: {_WS}", _sorted_words(falling=False)),
    rule(rf"^{_XS} - biggest first", _sorted_numbers(falling=True)),
    rule(rf"Which comes third when {_WS} are listed from A to Z", _third_word),
    rule(rf"^{_WS}: a to z\?", _sorted_words(falling=False)),
    rule(rf"^{_XS} -> low to high", _sorted_numbers(falling=False)),
    rule(rf"second largest of {_XS}", _ranked_number(lambda count: count - 2)),
    rule(rf"Reverse alphabetical, please: {_WS}", _sorted_words(falling=True)),
    rule(rf"z before a: {_WS}", _sorted_words(falling=True)),
    rule(rf"in the middle once {_XS} are arranged", _ranked_number(lambda count: count // 2)),
)
