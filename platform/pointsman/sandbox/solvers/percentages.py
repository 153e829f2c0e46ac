"""Solves percentages and money."""

from __future__ import annotations

import re
from collections.abc import Callable

from pointsman.sandbox.solvers.base import Answer, integers, plain, rule


def _of(compute: Callable[..., float]) -> Callable[[re.Match[str]], Answer]:
    return lambda match: (plain(compute(*integers(match))), "number")


def _less(a: float, p: float) -> float:
    return a - a * p / 100


def _more(a: float, p: float) -> float:
    return a + a * p / 100


RULES = (
    rule(r"What's (\d+)% of (\d+)\?", _of(lambda p, a: p * a / 100)),
    rule(r"jacket costs \$(\d+) and is (\d+)% off", _of(_less)),
    rule(r"went from (\d+) to (\d+)\. By what percent", _of(lambda a, b: (b - a) * 100 / a)),
    rule(r"bill is (\d+) euros and I want to leave a (\d+)% tip", _of(_more)),
    rule(r"^(\d+) € - (\d+) % = \?", _of(_less)),
    rule(r"^(\d+)% × (\d+) = \?", _of(lambda p, a: p * a / 100)),
    rule(r"put (\d+) dollars away at (\d+)% simple .* in (\d+) years", _of(lambda a, p, n: a * p * n / 100)),
    rule(r"Sticker says \$(\d+) before (\d+)% VAT", _of(_more)),
    rule(r"share fell (\d+)% from \$(\d+)", _of(lambda p, a: _less(a, p))),
    rule(r"knocked (\d+)% off a sofa marked \$(\d+)", _of(lambda p, a: _less(a, p))),
)
