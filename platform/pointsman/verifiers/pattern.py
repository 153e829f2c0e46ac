"""A regular expression over the final answer, which cannot hang.

Python's engine backtracks, so both sides are bounded: the answer is cut to 200 characters, and a pattern
may hold at most three repetitions that give back characters (possessive ones, `\\d++`, are free), none of
them around a group that itself repeats or alternates, and no reference back to a group. What is counted is
the parsed expression, not its text, so no way of writing hides a repetition; together with the optional
parts and alternatives that bounds the ways an answer can be taken apart to some 10^8.
Options: `pattern`, `full` (true: all of the answer must match), `case` (true: letters' case counts).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import comb
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from pointsman.errors import UserError
from pointsman.verifiers import spec as read
from pointsman.verifiers.extract import final_answer

MAX_ANSWER = 200
MAX_PATTERN = 400
MAX_REPEATS = 3
MAX_BRANCHES = 8
MAX_WAYS = 10**8


def regex(spec: Mapping[str, Any], answer: str) -> float:
    read.only(spec, ("pattern", "full", "case"))
    pattern = read.text(spec, "pattern")
    full, case = read.flag(spec, "full", False), read.flag(spec, "case", False)
    compiled = compile_bounded(pattern, case=case)
    final = final_answer(answer)[:MAX_ANSWER]
    return float((compiled.fullmatch(final) if full else compiled.search(final)) is not None)


def compile_bounded(pattern: str, *, case: bool = True, what: str = "verifier regex: pattern") -> re.Pattern[str]:
    """A pattern that takes at most about a second on `MAX_ANSWER` characters. Raises `UserError` for any other."""
    if len(pattern) > MAX_PATTERN:
        raise UserError(f"{what}: expected at most {MAX_PATTERN} characters, got {len(pattern)}")
    flags = 0 if case else re.IGNORECASE
    try:
        counted = _count(_parser.parse(pattern, flags))
        compiled = re.compile(pattern, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise UserError(f"{what}: expected a regular expression, {error}") from None
    _refuse_slow(counted, what)
    return compiled


@dataclass(frozen=True)
class _Count:
    """Of a part of a pattern: repetitions that backtrack, optional parts and alternatives, and what is refused."""

    repeats: int = 0
    branches: int = 0
    nested: bool = False
    refers: bool = False

    @property
    def varies(self) -> bool:
        """Whether it can match one text in several ways, or several lengths."""
        return self.repeats > 0 or self.branches > 0

    def __add__(self, other: _Count) -> _Count:
        return _Count(
            self.repeats + other.repeats,
            self.branches + other.branches,
            self.nested or other.nested,
            self.refers or other.refers,
        )


def _refuse_slow(counted: _Count, what: str) -> None:
    if counted.nested:
        raise UserError(f"{what}: a group that repeats or alternates must not itself repeat")
    if counted.refers:
        raise UserError(f"{what}: expected no reference to a group (\\1, (?P=name), (?(1)…))")
    repeats, branches = counted.repeats, counted.branches
    # An answer of n characters is begun at n places, and cut between r repetitions in C(n + r, r) ways.
    ways = MAX_ANSWER * comb(MAX_ANSWER + repeats, repeats) * 2**branches // (repeats + 1)
    if repeats > MAX_REPEATS or branches > MAX_BRANCHES or ways > MAX_WAYS:
        raise UserError(
            f"{what}: expected at most {MAX_REPEATS} repetitions and {MAX_BRANCHES} optional parts or "
            "alternatives, and with three repetitions none of those; possessive repetitions (\\d++) are free"
        )


def _count(parsed: Any) -> _Count:
    total = _Count()
    for kind, value in parsed:
        total += _count_one(kind, value)
    return total


def _count_one(kind: Any, value: Any) -> _Count:
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        return _count_repeat(kind, *value)
    if kind is op.BRANCH:
        options = [_count(option) for option in value[1]]
        return sum(options, _Count(branches=len(options) - 1))
    if kind is op.SUBPATTERN:
        return _count(value[-1])
    if kind in (op.ASSERT, op.ASSERT_NOT):
        return _count(value[1])
    if kind is op.ATOMIC_GROUP:
        return _count(value)
    if kind in (op.GROUPREF, op.GROUPREF_EXISTS):
        return _Count(refers=True)
    return _Count()


def _count_repeat(kind: Any, least: int, most: int, body: Any) -> _Count:
    inside = _count(body)
    if most > 1 and inside.varies:
        return inside + _Count(nested=True)
    if kind is op.POSSESSIVE_REPEAT or least == most:
        return inside
    return inside + (_Count(branches=1) if most == 1 else _Count(repeats=1))
