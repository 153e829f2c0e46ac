"""The numbers of full-information rows: each worker alone, the oracle, a random choice.

Scores and costs are summed as integers (units of 2^-62 and 1e-10 USD), so the numbers do not depend
on the order of the rows, and those of a log equal those of the file it came from, to the last bit.
About 400 bytes are held per query and worker.

Where a worker answered a query several times, its score on that query is the mean over repeats: a
best-of-repeats oracle would be paid for luck. The oracle still is, where scores are noisy.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from decimal import Decimal
from math import fsum

_SCORE_UNIT = 1 << 62
_COST_PLACES = 10


@dataclass(frozen=True)
class WorkerNumbers:
    """One worker over its own outcomes. `mean_cost` (USD) is over the `costed` outcomes, None where none is."""

    worker: str
    outcomes: int
    queries: int
    mean_score: float
    costed: int
    mean_cost: Decimal | None


@dataclass(frozen=True)
class Numbers:
    """What a set of full-information rows says. Scores are in [0, 1], costs in USD per query.

    `oracle` takes the best worker on each query (the cheapest of those that tie), `random` the mean
    over the workers of each query; both are means over the `scored_queries`. `best_single` is the
    worker of the highest mean among those that answered every scored query (among all, where none
    did). Costs of oracle and random are None unless every outcome has a cost.
    """

    queries: int
    scored_queries: int
    outcomes: int
    workers: tuple[WorkerNumbers, ...]
    best_single: str | None
    oracle: float | None
    random: float | None
    oracle_cost: Decimal | None
    random_cost: Decimal | None

    def worker(self, name: str) -> WorkerNumbers:
        return next(worker for worker in self.workers if worker.worker == name)


@dataclass(slots=True)
class _Cell:
    """One worker on one query: sums over repeats."""

    score: int = 0
    count: int = 0
    cost: int = 0
    costed: int = 0

    @property
    def mean_score(self) -> float:
        return self.score / (self.count * _SCORE_UNIT)

    @property
    def mean_cost(self) -> Decimal:
        return _dollars(self.cost) / self.costed


class Tally:
    """Takes queries and outcomes in any order and gives their `numbers`."""

    def __init__(self) -> None:
        self._cells: dict[Hashable, dict[str, _Cell]] = {}

    def add_query(self, key: Hashable) -> None:
        """A query that is there, with or without outcomes."""
        self._cells.setdefault(key, {})

    def add(self, key: Hashable, worker: str, score: float, cost: Decimal | None) -> None:
        """One outcome of the query `key`."""
        cells = self._cells.setdefault(key, {})
        cell = cells.get(worker)
        if cell is None:
            cell = cells[worker] = _Cell()
        cell.score += int(score * _SCORE_UNIT)
        cell.count += 1
        if cost is not None:
            cell.cost += int(cost.scaleb(_COST_PLACES))
            cell.costed += 1

    def answered(self, key: Hashable) -> frozenset[str]:
        """The workers that have an outcome for the query `key`."""
        return frozenset(self._cells[key])

    def workers(self) -> list[str]:
        """All workers seen, by name."""
        return sorted({worker for cells in self._cells.values() for worker in cells})

    def numbers(self) -> Numbers:
        scored = [cells for cells in self._cells.values() if cells]
        workers = tuple(_worker_numbers(name, scored) for name in self.workers())
        costed = bool(scored) and all(worker.costed == worker.outcomes for worker in workers)
        return Numbers(
            queries=len(self._cells),
            scored_queries=len(scored),
            outcomes=sum(worker.outcomes for worker in workers),
            workers=workers,
            best_single=_best_single(workers, len(scored)),
            oracle=_mean([max(cell.mean_score for cell in cells.values()) for cells in scored]),
            random=_mean([_mean_score(cells) for cells in scored]),
            oracle_cost=_mean_cost([_oracle_cost(cells) for cells in scored]) if costed else None,
            random_cost=_mean_cost([_random_cost(cells) for cells in scored]) if costed else None,
        )


def _worker_numbers(name: str, scored: list[dict[str, _Cell]]) -> WorkerNumbers:
    cells = [query[name] for query in scored if name in query]
    outcomes = sum(cell.count for cell in cells)
    costed = sum(cell.costed for cell in cells)
    return WorkerNumbers(
        worker=name,
        outcomes=outcomes,
        queries=len(cells),
        mean_score=sum(cell.score for cell in cells) / (outcomes * _SCORE_UNIT),
        costed=costed,
        mean_cost=_dollars(sum(cell.cost for cell in cells)) / costed if costed else None,
    )


def _best_single(workers: tuple[WorkerNumbers, ...], scored: int) -> str | None:
    complete = [worker for worker in workers if worker.queries == scored]
    candidates = complete or list(workers)
    if not candidates:
        return None
    return min(candidates, key=lambda worker: (-worker.mean_score, worker.worker)).worker


def _mean_score(cells: dict[str, _Cell]) -> float:
    return fsum(cell.mean_score for cell in cells.values()) / len(cells)


def _oracle_cost(cells: dict[str, _Cell]) -> Decimal:
    best = max(cell.mean_score for cell in cells.values())
    return min(cell.mean_cost for cell in cells.values() if cell.mean_score == best)


def _random_cost(cells: dict[str, _Cell]) -> Decimal:
    return sum((cells[name].mean_cost for name in sorted(cells)), Decimal(0)) / len(cells)


def _mean(values: list[float]) -> float | None:
    return fsum(values) / len(values) if values else None


def _mean_cost(values: list[Decimal]) -> Decimal | None:
    # Sorted, since decimal sums round at 28 digits and a sum must not depend on the order of rows.
    return sum(sorted(values), Decimal(0)) / len(values) if values else None


def _dollars(units: int) -> Decimal:
    return Decimal(units).scaleb(-_COST_PLACES)
