"""Solves story problems."""

from __future__ import annotations

import re
from collections.abc import Callable

from pointsman.sandbox.solvers.base import Answer, integers, plain, rule


def _of(compute: Callable[..., float]) -> Callable[[re.Match[str]], Answer]:
    return lambda match: (plain(compute(*integers(match))), "number")


RULES = (
    rule(
        r"has (\d+) marbles\. \w+ hands over (\d+) more, then (\d+) roll away",
        _of(lambda a, b, c: a + b - c),
    ),
    rule(r"train runs at (\d+) km per hour for (\d+) hours", _of(lambda v, t: v * t)),
    rule(r"is (\d+) years older than \w+\. Together they are (\d+)\.", _of(lambda gap, s: (s - gap) / 2)),
    rule(r"(\d+) boxes hold (\d+) pencils each\. After handing out (\d+)", _of(lambda n, k, m: n * k - m)),
    rule(r"(\d+) children share (\d+) sweets evenly, then each one eats (\d+)", _of(lambda k, n, m: n / k - m)),
    rule(r"(\d+) friends split (\d+) cookies evenly and each gobbles (\d+)", _of(lambda k, n, m: n / k - m)),
    rule(r"gives (\d+) litres a minute\. .* a tank of (\d+) litres", _of(lambda a, b: b / a)),
    rule(
        r"(\d+) adults at (\d+) each, (\d+) kids at (\d+) each",
        _of(lambda a, x, b, y: a * x + b * y),
    ),
    rule(
        r"through (\d+) pages a day, is on page (\d+); the book has (\d+)",
        _of(lambda a, page, pages: (pages - page) / a),
    ),
    rule(r"cyclist keeps up (\d+) km per hour for (\d+) hours", _of(lambda v, t: v * t)),
)
