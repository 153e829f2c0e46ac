"""Eligibility remembered: requests that need the same of a worker meet the same mask, until somebody falls ill."""

from __future__ import annotations

from harness.routing.eligibility import Eligibility, Needs, mask, output_of, with_health
from pointsman.pool import Pool
from pointsman.upstream.breaker import Breaker

KEPT = 1_024


class Masks:
    """Of one pool. What a request costs or how long it is enters by which context windows it fits into."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._bounded = tuple(worker for worker in pool.workers if worker.context_window is not None)
        self._known: dict[tuple[object, ...], Eligibility] = {}

    def of(self, needs: Needs, breaker: Breaker) -> Eligibility:
        """What `eligible` gives for the pool and the breaker's word on health. Nobody may change it."""
        found = self._mask(needs)
        # Embeddings stay with one worker whatever its health: another's vectors would be of another space.
        if breaker.quiet or needs.embeddings:
            return found
        return with_health(found, breaker.healthy, breaker.down)

    def _mask(self, needs: Needs) -> Eligibility:
        if needs.budget is not None:
            return mask(self._pool, needs)
        fits = tuple([needs.prompt_tokens + output_of(w, needs) <= (w.context_window or 0) for w in self._bounded])
        key = (
            needs.tools, needs.images, needs.audio, needs.json_schema, needs.logprobs, needs.several, needs.functions,
            needs.embeddings, needs.tags, needs.allowed, needs.excluded, fits,
        )  # fmt: skip
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= KEPT:
                self._known.clear()
            found = self._known[key] = mask(self._pool, needs)
        return found
