"""The dial: the cheap worker answers where the router is surer of it than a certified threshold, and nowhere else.

It works on the scores of one router version, for one endpoint of the worker; anything else leaves them as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from harness.routing.chain import Chain, Decided
from pointsman.pool import Pool
from pointsman.promotion.margin import margin
from pointsman.promotion.plan import DialPlan


class Dial(msgspec.Struct, frozen=True):
    """In force for scores of `version`."""

    worker: str
    version: str
    threshold: float

    @classmethod
    def of(cls, plan: DialPlan | None, chain: Chain, pool: Pool) -> Dial | None:
        """None where the worker behind the name or the router that serves is not the one it was calibrated for."""
        if plan is None or (worker := pool.by_name.get(plan.worker)) is None:
            return None
        if worker.endpoint_hash != plan.endpoint or chain.routers[0].version.id != plan.version:
            return None
        return cls(plan.worker, plan.version, plan.threshold)

    def turned(self, decided: Decided) -> tuple[Mapping[str, float], str | None]:
        """The scores that are drawn from, and the flag that says what the dial did (None: nothing)."""
        scores = decided.scored.scores
        if decided.router.version.id != self.version or (sure := margin(scores, self.worker)) is None:
            return scores, None
        if sure >= self.threshold:
            return {**scores, self.worker: max(scores.values()) + 1}, "dial_cheap"
        return {**scores, self.worker: min(scores.values()) - 1}, "dial_not_cheap"
