"""Several routers on one request, at the same time: what serves, the candidate of a gate, shadows.

Their picks are logged with the decision, and what they cost counts as orchestration. A shadow has no effect on the
choice; it does take time where it is slower than what serves, up to the routers' own deadlines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from harness.gateway.canary import Mixed, best
from harness.routing.base import NO_USAGE, Ask, RouterUsage
from harness.routing.chain import Chain, Decided
from pointsman.pool import Worker


class Beside(msgspec.Struct, frozen=True):
    """What each router said. `candidate` None: no gate."""

    base: Decided
    candidate: Decided | None = None
    shadows: tuple[Decided, ...] = ()

    @property
    def usages(self) -> list[RouterUsage]:
        """Of every router that was asked, the failed ones included."""
        everyone = [self.base, *([self.candidate] if self.candidate else []), *self.shadows]
        return [usage for decided in everyone for usage in usages_of(decided)]


async def ask_beside(
    base: Chain, candidate: Chain | None, shadows: Sequence[Chain], ask: Ask, workers: tuple[Worker, ...], seed: int
) -> Beside:
    """All of them at once, with one order of options, so that they differ in nothing but themselves."""
    chains = [base, *([candidate] if candidate is not None else []), *shadows]
    found = await asyncio.gather(*(chain.decide(ask, workers, seed) for chain in chains))
    rest = found[1:]
    if candidate is None:
        return Beside(found[0], None, tuple(rest))
    return Beside(found[0], rest[0], tuple(rest[1:]))


def usages_of(decided: Decided) -> list[RouterUsage]:
    """What the routers that were asked used, those left out that ask no LLM."""
    usages = [decided.scored.usage, *[failure.usage for failure in decided.failures]]
    return [usage for usage in usages if usage is not NO_USAGE]


def picks_row(beside: Beside, mixed: Mixed | None, rho: float | None) -> dict[str, Any] | None:
    """The column `shadow_picks`: every router's version, pick and scores, and the gate's draw where there was one."""
    if beside.candidate is None and not beside.shadows:
        return None
    part = "incumbent" if beside.candidate is not None else "serving"
    picks = [_pick(beside.base, part, mixed.incumbent if mixed else None)]
    if beside.candidate is not None:
        picks.append(_pick(beside.candidate, "candidate", mixed.candidate if mixed else None))
    picks += [_pick(decided, "shadow", None) for decided in beside.shadows]
    row: dict[str, Any] = {"picks": picks}
    if mixed is not None and mixed.arm is not None:
        row["gate"] = {"arm": mixed.arm, "rho": rho, "fresh": mixed.fresh}
    return row


def _pick(decided: Decided, part: str, worker: str | None) -> dict[str, Any]:
    version = decided.router.version
    return {
        "part": part,
        "version": version.id,
        "kind": version.kind,
        "worker": worker or best(decided.scored.scores)[0],
        "scores": dict(decided.scored.scores),
        "fail_open": list(decided.fail_open) or None,
        "ms": round(decided.seconds * 1000, 3),
    }
