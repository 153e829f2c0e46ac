"""Rows of a label set's part by which routers are compared: complete rewards, observed where there are enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from distill.arrays import Floats, Integers
from distill.labels.parts import Part
from distill.labels.store import LabelSet
from pointsman.errors import UserError

LEAST_FULL = 50


@dataclass(frozen=True, eq=False)
class Judged:
    """`rows` of the set [m], and a reward of every arm on each [m, k].

    `basis` says whether the rewards are what full-information rows earned, or the set's own estimates: those rank
    routers, and are no ground for a claim.
    """

    rows: Integers
    rewards: Floats
    basis: Literal["observed", "estimated"]


def judged(labels: LabelSet, *parts: Part) -> Judged:
    """The part's full rows, where there are at least `LEAST_FULL`; else all its rows with estimates."""
    rows = labels.of(*parts)
    if not len(rows):
        raise UserError(f"labels: no requests in {' and '.join(parts)}: the set is too small to be split")
    full = rows[np.isfinite(labels.rewards[rows]).all(axis=1)]
    if len(full) >= LEAST_FULL:
        return Judged(full, labels.rewards[full], "observed")
    return Judged(rows, labels.mean[rows], "estimated")
