"""The rows that a search learns from: requests with what every worker earned on each, and their split.

Three parts that never mix: `train` is what proposers read, `validation` is what candidates are compared
on, again and again, so its scores are no measure of quality, and `certification` is opened once, after
the search. The split follows time and keeps episodes whole; a text that the search has seen is left out
of the certification part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.routing.base import Ask
from pointsman.errors import UserError
from pointsman.hashing import content_hash, text_hash

Floats = NDArray[np.float64]
Basis = Literal["full", "dr"]
SHARES = (0.5, 0.2, 0.3)


@dataclass(frozen=True)
class Comment:
    """What somebody wrote about an answer, and by which key it came."""

    text: str
    key: str | None = None


@dataclass(frozen=True)
class Row:
    """One request. `moment` orders rows by time (seconds, or any growing number)."""

    id: str
    episode: str
    ask: Ask
    moment: float
    task: str | None = None
    key: str | None = None
    comments: tuple[Comment, ...] = ()


@dataclass(frozen=True)
class Objective:
    """Reward − λ·cost with λ = `trade_off` (reward per USD) and costs above `cap` USD counted as the cap.

    Moved and scaled so that it lies in [0, 1]: U = (reward + λ·(cap − cost)) ÷ (1 + λ·cap). Differences of U times
    `scale` are differences of reward − λ·cost.
    """

    trade_off: float = 0.0
    cap: float = 1.0

    @property
    def scale(self) -> float:
        return 1 + self.trade_off * self.cap


PLAIN = Objective()
"""The reward alone."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Requests with rewards in [0, 1] and costs in USD, both of shape (rows, workers).

    `basis` is `full` where every worker really answered every row, and `dr` where `rewards` are doubly
    robust pseudo-outcomes (`pseudo`), which may lie outside [0, 1]: good enough to search with, no basis
    for a certificate. `again` has a second, independent outcome per cell where there was one, else NaN.
    """

    workers: tuple[str, ...]
    rows: tuple[Row, ...]
    rewards: Floats
    costs: Floats
    basis: Basis = "full"
    again: Floats | None = None

    def __post_init__(self) -> None:
        shape = (len(self.rows), len(self.workers))
        if self.rewards.shape != shape or self.costs.shape != shape:
            raise UserError(f"rows: expected rewards and costs of shape {shape}, got {self.rewards.shape}")
        if not np.isfinite(self.rewards).all():
            raise UserError("rows: every worker needs a reward on every row; leave incomplete rows out")

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def texts(self) -> list[str]:
        return [row.ask.text for row in self.rows]

    def take(self, indices: Sequence[int] | NDArray[np.intp]) -> Rows:
        """The rows at these positions, in this order."""
        at = np.asarray(indices, dtype=np.intp)
        again = None if self.again is None else self.again[at]
        rows = tuple(self.rows[i] for i in at)
        return Rows(self.workers, rows, self.rewards[at], self.costs[at], self.basis, again)

    def utilities(self, objective: Objective) -> Floats:
        """What each worker is worth on each row, shape (rows, workers)."""
        if objective.trade_off == 0:
            return self.rewards
        paid = np.clip(_filled(self.costs, self.workers), 0, objective.cap)
        worth: Floats = (self.rewards + objective.trade_off * (objective.cap - paid)) / objective.scale
        return worth

    @property
    def hash(self) -> str:
        """Of ids, texts and rewards: names a set in reports and in the ledger."""
        return content_hash([[row.id, text_hash(row.ask.text)] for row in self.rows] + [self.rewards.tolist()])


@dataclass(frozen=True)
class Splits:
    """The three parts. `repeated` counts rows left out of `certification` because the search saw their text."""

    train: Rows
    validation: Rows
    certification: Rows
    repeated: int = 0


def split(rows: Rows, shares: tuple[float, float, float] = SHARES, spent: float | None = None) -> Splits:
    """Cuts `rows` by time into train, validation and certification, episodes whole (by their first row).

    What began before `spent`, the end of the last certification window, is never certified with again: it is there to
    learn from.
    """
    if min(shares) <= 0 or abs(sum(shares) - 1) > 1e-9:
        raise UserError(f"split: expected three shares above 0 that sum to 1, got {shares}")
    first: dict[str, float] = {}
    for row in rows.rows:
        first[row.episode] = min(row.moment, first.get(row.episode, row.moment))
    order = sorted(range(len(rows)), key=lambda i: (first[rows.rows[i].episode], rows.rows[i].episode, i))
    opened = 0 if spent is None else sum(first[row.episode] <= spent for row in rows.rows)
    late = _whole(max(round((shares[0] + shares[1]) * len(order)), opened), order, rows)
    early = _whole(round(shares[0] / (shares[0] + shares[1]) * late), order, rows)
    parts = [order[:early], order[early:late], order[late:]]
    seen = {_plain(rows.rows[i].ask.text) for i in (*parts[0], *parts[1])}
    fresh = [i for i in parts[2] if _plain(rows.rows[i].ask.text) not in seen]
    made = Splits(rows.take(parts[0]), rows.take(parts[1]), rows.take(fresh), len(parts[2]) - len(fresh))
    if not (len(made.train) and len(made.validation)):
        raise UserError(f"split: {len(rows)} rows are too few for a search; collect more with `pointsman probe`")
    return made


def objective_of(parts: Sequence[Rows], trade_off: float) -> Objective:
    """The objective with the largest cost of these rows as its cap: of rows that the search may see."""
    if trade_off < 0:
        raise UserError(f"trade-off: expected 0 or more, got {trade_off:g}")
    costs = np.concatenate([part.costs.ravel() for part in parts])
    known = costs[np.isfinite(costs)]
    if trade_off and not len(known):
        raise UserError("no cost is known of any worker: declare prices, or search with trade-off 0")
    return Objective(trade_off, float(known.max()) if len(known) and known.max() > 0 else 1.0)


def _whole(cut: int, order: list[int], rows: Rows) -> int:
    """The cut, moved to the end of an episode that it would part."""
    while 0 < cut < len(order) and rows.rows[order[cut]].episode == rows.rows[order[cut - 1]].episode:
        cut += 1
    return cut


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _filled(costs: Floats, workers: tuple[str, ...]) -> Floats:
    known = np.isfinite(costs)
    unknown = [name for place, name in enumerate(workers) if not known[:, place].any()]
    if unknown:
        raise UserError(f"no cost is known of {', '.join(unknown)}: declare its price, or search with trade-off 0")
    means = np.where(known, costs, 0.0).sum(axis=0) / known.sum(axis=0)
    return np.where(known, costs, means)
