"""From a request that is to be decided to the worker that was drawn: scores, dial, ε, and the arm of a gate."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from harness.gateway.canary import Arms, Canary, Mixed, arm_uniform, may_differ, mixed_draw
from harness.gateway.episodes import Episode
from harness.gateway.shadow import Beside, ask_beside, picks_row
from harness.gateway.versions import Served
from harness.routing.base import Ask
from harness.routing.chain import Decided
from harness.routing.exploration import Draw, draw
from pointsman.pool import Worker
from pointsman.words import GateArm

NOBODY = Draw({}, "")


class Choice(msgspec.Struct, frozen=True):
    """What there is to choose: for whom, among whom, in which conversation."""

    ask: Ask
    workers: tuple[Worker, ...]
    secret: bytes
    episode: Episode


class Chosen(msgspec.Struct, frozen=True):
    """What was drawn. `decided` is the router's that was followed; `beside` what the others said, if any were asked."""

    drawn: Draw = NOBODY
    decided: Decided | None = None
    flags: tuple[str, ...] = ()
    beside: Beside | None = None
    picks: dict[str, Any] | None = None
    gate_id: str | None = None


async def choose(served: Served, choice: Choice, epsilon: float, arms: Arms | None, rng: random.Random) -> Chosen:
    """Draws a worker from what `served` says. One router alone is asked where nothing is to be compared."""
    seed = rng.getrandbits(32)
    if served.canary is None and not served.shadows:
        decided = await served.chain.decide(choice.ask, choice.workers, seed)
        scores, flag = served.dial.turned(decided) if served.dial is not None else (decided.scored.scores, None)
        ranking = decided.scored.ranking if flag is None else None
        return Chosen(draw(scores, epsilon, rng, ranking), decided, _flags(decided, flag))
    beside = await ask_beside(served.chain, served.candidate, served.shadows, choice.ask, choice.workers, seed)
    base = beside.base
    scores, flag = served.dial.turned(base) if served.dial is not None else (base.scored.scores, None)
    if served.canary is None or beside.candidate is None or arms is None:
        drawn = draw(scores, epsilon, rng)
        return Chosen(drawn, base, _flags(base, flag), beside, picks_row(beside, None, None))
    canary, theirs = served.canary, beside.candidate.scored.scores
    kept = await arms.find(canary.gate_id, choice.episode) if may_differ(scores, theirs) else None
    mixed = mixed_draw(
        scores,
        theirs,
        epsilon=epsilon,
        rho=canary.rho,
        arm_at=arm_uniform(choice.secret, canary.gate_id, choice.episode.id),
        kept=kept,
        rng=rng,
    )
    return _chosen(mixed, canary, beside, flag, arms, choice)


def _chosen(mixed: Mixed, canary: Canary, beside: Beside, flag: str | None, arms: Arms, choice: Choice) -> Chosen:
    arm: GateArm | None = mixed.arm
    if arm is not None and mixed.fresh:
        arms.keep(canary.gate_id, choice.episode.id, arm)
    followed = beside.candidate if arm == "candidate" and beside.candidate is not None else beside.base
    flags = _flags(followed, flag if followed is beside.base else None)
    gate_id = canary.gate_id if arm is not None else None
    return Chosen(mixed.draw, followed, flags, beside, picks_row(beside, mixed, canary.rho), gate_id)


def _flags(decided: Decided, flag: str | None) -> tuple[str, ...]:
    flags = decided.scored.flags
    return flags if flag is None else (*flags, flag)
