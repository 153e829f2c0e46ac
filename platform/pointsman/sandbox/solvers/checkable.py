"""Solves what is easily checked: two numbers by sum, difference and product; a square root."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isqrt
from random import Random

_N = r"(\d{1,9})"


def _by_sum(total: int, product: int) -> tuple[int, ...]:
    return _pair(total, total * total - 4 * product)


def _by_difference(apart: int, product: int) -> tuple[int, ...]:
    total = isqrt(apart * apart + 4 * product)
    return _pair(total, apart * apart)


def _pair(total: int, squared: int) -> tuple[int, ...]:
    if squared < 0:
        raise ValueError("no two whole numbers")
    apart = isqrt(squared)
    return ((total - apart) // 2, (total + apart) // 2)


def _root(square: int) -> tuple[int, ...]:
    return (isqrt(square),)


_RULES: tuple[tuple[re.Pattern[str], Callable[..., tuple[int, ...]]], ...] = tuple(
    (re.compile(pattern), solve)
    for pattern, solve in (
        (rf"whose sum is {_N} and whose product is {_N}", _by_sum),
        (rf"differ by {_N} and their product is {_N}", _by_difference),
        (rf"multiplied by itself makes {_N}\?", _root),
        (rf"add up to {_N} and multiply to {_N}\?", _by_sum),
        (rf"area of {_N} and half its way round is {_N}", lambda product, total: _by_sum(total, product)),
        (rf"two whole numbers, {_N} apart, with product {_N}", _by_difference),
        (rf"The square of what whole number is {_N}\?", _root),
        (rf"Product {_N}, sum {_N}: which two", lambda product, total: _by_sum(total, product)),
    )
)


def solve_checkable(prompt: str) -> tuple[int, ...] | None:
    """The numbers that a prompt asks for, None where it asks for none."""
    for pattern, solve in _RULES:
        if match := pattern.search(prompt[:4_000]):
            try:
                return solve(*map(int, match.groups()))
            except ValueError:
                return None
    return None


def mistaken_numbers(numbers: tuple[int, ...], rng: Random) -> tuple[int, ...]:
    """The numbers with one of them a little off."""
    at = rng.randrange(len(numbers))
    off = rng.choice((-3, -2, -1, 1, 2, 3))
    return tuple(value + off if place == at else value for place, value in enumerate(numbers))
