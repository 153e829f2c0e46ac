"""Which classic router: the methods fitted on the training rows of a label set, the best on its validation rows kept.

What is fitted on are the set's estimates, not single rewards: those of untried workers are known by nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from distill.classic.text_routers import TextRouter, TextRouterConfig, fit
from distill.evaluate.values import realised
from distill.labels.judging import judged
from distill.labels.store import LabelSet
from distill.table import RewardTable
from harness.routing.classic_model import Method
from pointsman.errors import UserError

TRIED: tuple[Method, ...] = ("constant", "linear", "mixture", "clusters", "neighbours")
assert set(TRIED) <= set(get_args(Method))


@dataclass(frozen=True, eq=False)
class Chosen:
    """`router` is fitted on training and validation rows. `values` by method on validation rows; `basis` of them."""

    router: TextRouter
    method: Method
    values: dict[str, float]
    basis: str
    left_out: dict[str, str]


def estimates(labels: LabelSet) -> RewardTable:
    """The set's estimates as a reward table."""
    return replace(labels.table(), rewards=np.clip(labels.mean, 0, 1))


def choose(
    labels: LabelSet, method: Method | None, seed: int, progress: Callable[[int, int], None] = lambda done, all: None
) -> Chosen:
    """The router of `method`, or the best of `TRIED` where none is named; a tie goes to the simpler one."""
    methods = TRIED if method is None else (method,)
    table, part = estimates(labels), judged(labels, "validation")
    training = labels.of("train")
    texts = [labels.texts[row] for row in part.rows]
    values: dict[str, float] = {}
    left_out: dict[str, str] = {}
    for number, name in enumerate(methods):
        try:
            fitted = fit(table.rows(training), config_of(name, len(training)), seed)
        except UserError as error:
            if method is not None:
                raise
            left_out[name] = str(error)
            continue
        values[name] = float(realised(part.rewards, fitted.scores(texts)).mean())
        progress(number + 1, len(methods))
    best: Method = max((name for name in methods if name in values), key=lambda name: values[name])
    both = labels.of("train", "validation")
    router = fit(table.rows(both), config_of(best, len(both)), seed)
    return Chosen(router, best, values, part.basis, left_out)


def config_of(method: Method, rows: int) -> TextRouterConfig:
    """The method's settings; fewer neighbours and dimensions where there are few rows."""
    return TextRouterConfig(method, neighbours=min(80, max(5, rows // 20)), dimensions=min(32, max(2, rows // 10)))
