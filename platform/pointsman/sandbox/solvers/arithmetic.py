"""Solves plain calculation."""

from __future__ import annotations

import re
from collections.abc import Callable

from pointsman.sandbox.solvers.base import Answer, integers, plain, rule


def _of(compute: Callable[..., float]) -> Callable[[re.Match[str]], Answer]:
    return lambda match: (plain(compute(*integers(match))), "number")


RULES = (
    rule(r"What is (\d+) times (\d+)\?", _of(lambda a, b: a * b)),
    rule(r"^(\d+) \+ (\d+) \+ (\d+) = \?", _of(lambda a, b, c: a + b + c)),
    rule(r"Work out \((\d+) - (\d+)\) \* (\d+)", _of(lambda a, b, c: (a - b) * c)),
    rule(r"remainder when (\d+) is divided by (\d+)", _of(lambda a, b: a % b)),
    rule(r"Add up (\d+), (\d+) and (\d+)", _of(lambda a, b, c: a + b + c)),
    rule(r"^(\d+) x (\d+)\?", _of(lambda a, b: a * b)),
    rule(r"subtract (\d+) from (\d+)", _of(lambda a, b: b - a)),
    rule(r"How much is (\d+) minus (\d+) plus (\d+)", _of(lambda a, b, c: a - b + c)),
    rule(r"Square (\d+)", _of(lambda a: a * a)),
    rule(r"Evaluate: (\d+) \* (\d+) - (\d+)", _of(lambda a, b, c: a * b - c)),
)
