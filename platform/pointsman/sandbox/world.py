"""A world of the sandbox: workers, cards and the mix of tasks, as a pure function of its seed.

What a worker is good at is no part of it: that stands in `truth`, which routers may not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pointsman.sandbox import cards as wording
from pointsman.sandbox import roster
from pointsman.sandbox.cards import CardKind
from pointsman.sandbox.roster import SandboxWorker

__all__ = ["CardKind", "SandboxWorker", "World"]


@dataclass(frozen=True)
class World:
    """One world. Two worlds of one seed are equal in everything."""

    seed: int

    @cached_property
    def workers(self) -> tuple[SandboxWorker, ...]:
        return roster.workers(self.seed)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(worker.name for worker in self.workers)

    @property
    def mix(self) -> Mapping[str, float]:
        """The share of each task family in the traffic; sums to 1."""
        return roster.mix(self.seed)

    @property
    def default(self) -> str:
        """The worker to fall back on: the dearest, as people do."""
        return max(self.workers, key=lambda worker: worker.price_output).name

    def cards(self, kind: CardKind = "world") -> Mapping[str, str]:
        """A card for every worker: the world's own, truthful ones, or ones that say nothing."""
        return wording.cards(self.seed, kind)
