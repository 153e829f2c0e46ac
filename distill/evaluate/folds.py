"""Splits for choosing and for judging: stratified by task, duplicates of a text kept together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from distill.arrays import Integers
from pointsman.errors import UserError

Fold = tuple[Integers, Integers]


def stratified_folds(strata: Integers, folds: int, seed: int, groups: Sequence[str] | None = None) -> Iterator[Fold]:
    """(training rows, other rows) per fold; every row is once in the others.

    Each stratum is spread evenly. Rows of one group (the same text, the same episode) share a fold, that of
    the group's first row.
    """
    if folds < 2 or folds > len(strata):
        raise UserError(f"{folds} folds of {len(strata)} requests: expected from 2 to as many as there are requests")
    number = _spread(strata, folds, np.random.default_rng(seed))
    if groups is not None:
        first: dict[str, int] = {}
        number = np.array([first.setdefault(group, int(fold)) for group, fold in zip(groups, number, strict=True)])
    for fold in range(folds):
        yield np.flatnonzero(number != fold), np.flatnonzero(number == fold)


def _spread(strata: Integers, folds: int, rng: np.random.Generator) -> Integers:
    number = np.empty(len(strata), np.int64)
    start = 0
    for stratum in np.unique(strata):
        members = rng.permutation(np.flatnonzero(strata == stratum))
        number[members] = (start + np.arange(len(members))) % folds
        start += len(members)
    return number


def stratified_split(strata: Integers, share: float, seed: int) -> Fold:
    """(the rest, about `share` of every stratum)."""
    rng = np.random.default_rng(seed)
    chosen = [
        rng.permutation(np.flatnonzero(strata == stratum))[: max(1, round(share * int((strata == stratum).sum())))]
        for stratum in np.unique(strata)
    ]
    other = np.sort(np.concatenate(chosen))
    return np.setdiff1d(np.arange(len(strata)), other), other
