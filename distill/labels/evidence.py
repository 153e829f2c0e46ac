"""What is known of requests and arms: cells, each with its source, and its propensity where it was drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

import numpy as np

from distill.arrays import Bools, Floats, Integers
from distill.table import Arm
from pointsman.errors import UserError

Source = Literal["verifier", "feedback", "judge", "verdict"]
SOURCES: tuple[Source, ...] = ("verifier", "feedback", "judge", "verdict")


@dataclass(frozen=True)
class Asked:
    """One request of the log. `id` is its decision's."""

    id: str
    text: str
    episode: str
    moment: datetime
    origin: str
    task: str | None = None
    split: str | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """What an arm earned on a request, by one source. `propensity` is set where the arm was drawn with it.

    `rater` is who said so, where somebody did: a person's or a key's name, however many words they gave.
    """

    row: int
    endpoint: str
    value: float
    source: Source
    propensity: float | None = None
    rater: str | None = None


@dataclass(frozen=True, eq=False)
class Evidence:
    """n requests, k arms and m cells; `rows`, `columns`, `values`, `weights`, `propensities` (NaN: not drawn) are [m].

    `reruns` are pairs of independent values of one cell. `left_out` counts what could not be used, by reason.
    """

    asked: tuple[Asked, ...]
    arms: tuple[Arm, ...]
    rows: Integers
    columns: Integers
    values: Floats
    weights: Floats
    propensities: Floats
    sources: tuple[Source, ...]
    raters: tuple[str | None, ...]
    reruns: Floats = field(default_factory=lambda: np.empty((0, 2)))
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.asked), len(self.arms)

    @property
    def drawn(self) -> Bools:
        """Which cells were drawn with a known probability, [m]."""
        result: Bools = np.isfinite(self.propensities)
        return result

    def weighted(self, weights: Floats) -> Evidence:
        return replace(self, weights=weights)

    def matrices(self) -> tuple[Floats, Floats]:
        """Weighted mean values [n, k], NaN where nothing is known, and the weights that they stand on."""
        total, sums = np.zeros(self.shape), np.zeros(self.shape)
        np.add.at(total, (self.rows, self.columns), self.weights)
        np.add.at(sums, (self.rows, self.columns), self.weights * self.values)
        means = np.full(self.shape, np.nan)
        np.divide(sums, total, out=means, where=total > 0)
        return means, total


def gather(
    asked: Sequence[Asked],
    cells: Sequence[Cell],
    arms: Sequence[Arm],
    *,
    least: int = 1,
    reruns: Floats | None = None,
    left_out: Mapping[str, int] | None = None,
) -> Evidence:
    """Cells of these arms alone. An arm with fewer than `least` cells is dropped, as are requests that nothing is
    known of. Raises `UserError` where fewer than two arms are left."""
    counts = {arm.endpoint: 0 for arm in arms}
    for cell in cells:
        if cell.endpoint in counts:
            counts[cell.endpoint] += 1
    kept = tuple(arm for arm in arms if counts[arm.endpoint] >= least)
    if len(kept) < 2:
        raise UserError(
            f"labels: something is known of {len(kept)} workers at their present endpoints, and two are needed; "
            "run `pointsman probe` or `pointsman audit`, or let exploration go on"
        )
    column = {arm.endpoint: number for number, arm in enumerate(kept)}
    useful = [cell for cell in cells if cell.endpoint in column]
    known = sorted({cell.row for cell in useful})
    place = {row: number for number, row in enumerate(known)}
    dropped = dict(left_out or {})
    few = len(arms) - len(kept)
    if few:
        dropped["workers with too few answers"] = few
    return Evidence(
        asked=tuple(asked[row] for row in known),
        arms=kept,
        rows=np.array([place[cell.row] for cell in useful], np.int64),
        columns=np.array([column[cell.endpoint] for cell in useful], np.int64),
        values=np.array([cell.value for cell in useful], np.float64),
        weights=np.ones(len(useful)),
        propensities=np.array([np.nan if cell.propensity is None else cell.propensity for cell in useful], np.float64),
        sources=tuple(cell.source for cell in useful),
        raters=tuple(cell.rater for cell in useful),
        reruns=np.empty((0, 2)) if reruns is None else reruns,
        left_out=dropped,
    )
