"""The default router, the chain's end: the configured worker, or the cheapest that is offered.

The cheapest has the least sum of input and output price; a worker without a price counts as the
dearest, and of equal ones the first of the pool is taken.
"""

from __future__ import annotations

from decimal import Decimal

from harness.routing.base import Ask, RouterVersion, Scored
from harness.routing.remembered import Remembered
from pointsman.pool import Worker
from pointsman.words import RouterKind

DEADLINE = 0.05
_DEAREST = Decimal("Infinity")


class DefaultRouter:
    """Gives 1 to one worker, 0 to the others, and never fails.

    The flag `cheapest` says that the configured worker was not offered, or none is configured.
    """

    kind: RouterKind = "default"
    deadline = DEADLINE

    def __init__(self, worker: str | None = None, parent_id: str | None = None) -> None:
        self.worker = worker
        self._scored = Remembered(self._score)
        self.version = RouterVersion("default", {"default": worker}, parent_id)

    async def score(self, ask: Ask, workers: tuple[Worker, ...], seed: int) -> Scored:
        return self.score_now(ask, workers, seed)

    def score_now(self, ask: Ask, workers: tuple[Worker, ...], seed: int) -> Scored:
        """The same without suspending."""
        return self._scored(workers)

    def _score(self, workers: tuple[Worker, ...]) -> Scored:
        if self.worker is not None and any(worker.name == self.worker for worker in workers):
            return Scored.of_one(self.worker, workers)
        return Scored.of_one(min(workers, key=_dearness).name, workers, ("cheapest",))


def _dearness(worker: Worker) -> Decimal:
    return _DEAREST if worker.price is None else worker.price.input + worker.price.output
