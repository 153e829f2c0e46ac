"""What a solver is: patterns over a prompt's text, each with the computation that answers it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Form = Literal["number", "date", "weekday", "word", "letters", "list", "json", "yes_no", "true_false", "token"]
"""What an answer looks like, which decides how a wrong one looks."""


@dataclass(frozen=True)
class Solved:
    """A right answer, the skill that it took, and what else of the prompt a wrong answer could name."""

    skill: str
    answer: str
    form: Form
    others: tuple[str, ...] = ()


Answer = tuple[str, Form] | tuple[str, Form, tuple[str, ...]]


@dataclass(frozen=True)
class Rule:
    """A question that a solver recognises."""

    pattern: re.Pattern[str]
    solve: Callable[[re.Match[str]], Answer]


MAX_RUN = 60
_RUN = re.compile(r"(\\d|\\w|\[a-z\])\+")


def rule(pattern: str, solve: Callable[[re.Match[str]], Answer]) -> Rule:
    """A rule whose runs of digits and letters are bounded, so that searching a long text stays linear."""
    bounded = _RUN.sub(rf"\1{{1,{MAX_RUN}}}", pattern)
    return Rule(re.compile(bounded, re.DOTALL), solve)


def plain(value: float) -> str:
    """A number as people write it: no exponent, no trailing zeros, six decimals (ten below 1)."""
    text = f"{value:.{6 if abs(value) >= 1 else 10}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def integers(match: re.Match[str]) -> list[int]:
    return [int(group) for group in match.groups()]
