"""The chain of routers: the first decides, and where it fails or is slow, the next; the last cannot fail."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import msgspec

from harness.routing.base import NO_USAGE, Ask, Router, RouterFailed, RouterUsage, Scored
from pointsman.errors import BrokenInvariant, UpstreamError
from pointsman.pool import Worker
from pointsman.words import ParseStatus, RouterKind


@runtime_checkable
class LocalRouter(Protocol):
    """A router that computes in this process and never suspends, so that no timer could end it."""

    def score_now(self, ask: Ask, workers: tuple[Worker, ...], seed: int) -> Scored: ...


class LinkFailure(msgspec.Struct, frozen=True):
    """A router of the chain that did not decide, with what it said, for the log; `seconds` it took."""

    kind: RouterKind
    version_id: str
    reason: str
    seconds: float
    parse_status: ParseStatus = "not_parsed"
    raw_reply: str | None = None
    card_order: tuple[str, ...] = ()
    usage: RouterUsage = NO_USAGE

    def __str__(self) -> str:
        return f"{self.kind}:{self.reason}"


class Decided(NamedTuple):
    """The scores, the router that gave them, the routers that failed before it, and the seconds in all."""

    scored: Scored
    router: Router
    failures: tuple[LinkFailure, ...]
    seconds: float

    @property
    def fail_open(self) -> tuple[str, ...]:
        """Why earlier routers did not decide, such as `("harness:timeout",)`."""
        return tuple(str(failure) for failure in self.failures)


class Chain:
    """Routers in order of preference, each under its own deadline; `clock` gives seconds."""

    def __init__(self, routers: Sequence[Router], clock: Callable[[], float]) -> None:
        if not routers or routers[-1].kind != "default":
            raise BrokenInvariant("a chain of routers must end with the default router")
        self.routers = tuple(routers)
        self._links = tuple((router, router if isinstance(router, LocalRouter) else None) for router in routers)
        self._clock = clock

    async def decide(self, ask: Ask, workers: tuple[Worker, ...], seed: int) -> Decided:
        """Finite scores for exactly `workers`, which must not be empty."""
        started = begun = self._clock()
        failures: tuple[LinkFailure, ...] = ()
        for router, local in self._links:
            result = (
                _scored_now(local, ask, workers, seed)
                if local is not None
                else await _scored_in_time(router, ask, workers, seed)
            )
            if isinstance(result, Scored) and result.ranking is None and not _complete(result, workers):
                result = _bad_scores(result)
            now = self._clock()
            if isinstance(result, Scored):
                return Decided(result, router, failures, now - started)
            failures = (*failures, _failure(router, result, now - begun))
            begun = now
        raise BrokenInvariant(f"the last router of the chain failed: {failures[-1]}")


def _scored_now(router: LocalRouter, ask: Ask, workers: tuple[Worker, ...], seed: int) -> Scored | RouterFailed:
    try:
        return router.score_now(ask, workers, seed)
    except RouterFailed as error:
        return error


async def _scored_in_time(router: Router, ask: Ask, workers: tuple[Worker, ...], seed: int) -> Scored | RouterFailed:
    try:
        async with asyncio.timeout(router.deadline):
            return await router.score(ask, workers, seed)
    except RouterFailed as error:
        return error
    except UpstreamError as error:
        return RouterFailed(error.fault)
    except TimeoutError:
        return RouterFailed("timeout")


def _complete(scored: Scored, workers: tuple[Worker, ...]) -> bool:
    scores = scored.scores
    if len(scores) != len(workers):
        return False
    return all(worker.name in scores and math.isfinite(scores[worker.name]) for worker in workers)


def _bad_scores(scored: Scored) -> RouterFailed:
    return RouterFailed(
        "bad_scores",
        parse_status=scored.parse_status,
        raw_reply=scored.raw_reply,
        card_order=scored.card_order,
        usage=scored.usage,
    )


def _failure(router: Router, error: RouterFailed, seconds: float) -> LinkFailure:
    return LinkFailure(
        router.kind,
        router.version.id,
        error.reason,
        seconds,
        error.parse_status,
        error.raw_reply,
        error.card_order,
        error.usage,
    )
