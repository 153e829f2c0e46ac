"""The default router, the chain's end: the configured worker, or the cheapest that is offered.

The cheapest has the least sum of input and output price; a worker without a price counts as the
dearest, and of equal ones the first of the pool is taken.
"""

from __future__ import annotations

from decimal import Decimal

from harness.routing.base import Ask, RouterVersion, Scored
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
        self.version = RouterVersion("default", {"default": worker}, parent_id)

    async def score(self, ask: Ask, workers: tuple[Worker, ...], seed: int) -> Scored:
        return self.score_now(ask, workers, seed)

    def score_now(self, ask: Ask, workers: tuple[Worker, ...], seed: int) -> Scored:
        """The same without suspending."""
        scores = {worker.name: 0.0 for worker in workers}
        if self.worker is not None and self.worker in scores:
            scores[self.worker] = 1.0
            return Scored(scores)
        scores[min(workers, key=_dearness).name] = 1.0
        return Scored(scores, flags=("cheapest",))


def _dearness(worker: Worker) -> Decimal:
    return _DEAREST if worker.price is None else worker.price.input + worker.price.output
