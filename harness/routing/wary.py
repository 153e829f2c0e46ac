"""A trained router that gives way where what it would choose is no more what it was trained on.

It knows workers by endpoint version. Where its choice would be one that has left the pool (removed, or another version
now), or one under a drift alarm, it does not decide that request: the next of the chain does (the prompted router,
which reads today's cards), and `fail_open` says why. All other requests are decided as before, by the same scores, so
only the traffic of the changed worker moves. What it has never seen gets no request from it but by exploration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from harness.routing.base import Ask, Router, RouterFailed, RouterVersion, Scored
from harness.routing.chain import LocalRouter
from pointsman.pool import Pool, Worker
from pointsman.words import RouterKind

TRAINED: tuple[RouterKind, ...] = ("learned", "classic")


@dataclass(frozen=True)
class Gone(Worker):
    """An endpoint that a router was trained on, and that no worker has any more."""

    endpoint: str = ""

    @cached_property
    def endpoint_hash(self) -> str:
        return self.endpoint


class Wary:
    """`gone` are scored beside the workers offered; `doubted` are endpoint hashes of workers that are offered."""

    def __init__(self, router: Router, gone: Sequence[Gone], doubted: frozenset[str]) -> None:
        self.kind: RouterKind = router.kind
        self.version: RouterVersion = router.version
        self.deadline = router.deadline
        self._router = router
        self._gone = tuple(gone)
        self._doubted = doubted

    async def score(self, ask: Ask, workers: tuple[Worker, ...], seed: int) -> Scored:
        """Raises `RouterFailed`: `worker_gone`, `worker_doubted`, and what the router itself raises."""
        return self._judged(await self._router.score(ask, (*workers, *self._gone), seed), workers)

    def _judged(self, scored: Scored, workers: tuple[Worker, ...]) -> Scored:
        scores = scored.scores
        best = max(scores.values())
        if any(scores[one.name] == best for one in self._gone):
            raise RouterFailed("worker_gone", usage=scored.usage)
        if any(scores[one.name] == best for one in workers if one.endpoint_hash in self._doubted):
            raise RouterFailed("worker_doubted", usage=scored.usage)
        kept = {worker.name: scores[worker.name] for worker in workers}
        return msgspec.structs.replace(scored, scores=kept, ranking=None)


class WaryNow(Wary):
    """The same of a router that computes in this process."""

    def __init__(self, router: Router, local: LocalRouter, gone: Sequence[Gone], doubted: frozenset[str]) -> None:
        super().__init__(router, gone, doubted)
        self._local = local

    def score_now(self, ask: Ask, workers: tuple[Worker, ...], seed: int) -> Scored:
        return self._judged(self._local.score_now(ask, (*workers, *self._gone), seed), workers)


def wary(router: Router, pool: Pool, doubted: Sequence[str] = ()) -> Router:
    """The router itself where it is not a trained one, or where nothing that it knows has changed."""
    known = router.version.config.get("endpoints")
    if router.kind not in TRAINED or not isinstance(known, list):
        return router
    here = {worker.endpoint_hash for worker in pool.workers}
    gone = [Gone(f"\0gone/{hash_}", "", "", (), endpoint=hash_) for hash_ in known if hash_ not in here]
    suspect = frozenset(doubted) & here & set(known)
    if not gone and not suspect:
        return router
    if isinstance(router, LocalRouter):
        return WaryNow(router, router, gone, suspect)
    return Wary(router, gone, suspect)
