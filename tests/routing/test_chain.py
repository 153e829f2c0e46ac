"""The chain: deadlines, failures on record, the end that cannot fail."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal

import pytest

from harness.routing.base import Ask, RouterFailed, RouterUsage, RouterVersion, Scored
from harness.routing.chain import Chain, LinkFailure
from harness.routing.default import DefaultRouter
from harness.routing.rule import RuleRouter
from pointsman.config.model import RuleConfig
from pointsman.errors import BrokenInvariant, UpstreamError
from pointsman.pool import Endpoint, Worker
from pointsman.words import RouterKind

WORKERS = tuple(Worker(name, "card", "m", (Endpoint("http://127.0.0.1:1"),)) for name in ("a", "b"))
ASK = Ask("x")


class Remote:
    """A router that suspends, doing what it is given."""

    def __init__(self, behave: Callable[[], Awaitable[Scored]], deadline: float = 5.0, kind: RouterKind = "harness"):
        self.kind: RouterKind = kind
        self.version = RouterVersion(kind, {"x": 1})
        self.deadline = deadline
        self.behave = behave

    async def score(self, ask: Ask, workers: tuple[Worker, ...], seed: int) -> Scored:
        return await self.behave()


def gives(scores: Mapping[str, float]) -> Callable[[], Awaitable[Scored]]:
    async def behave() -> Scored:
        await asyncio.sleep(0)
        return Scored(scores, parse_status="ok", raw_reply="raw")

    return behave


def raises(error: Exception) -> Callable[[], Awaitable[Scored]]:
    async def behave() -> Scored:
        raise error

    return behave


async def stalls() -> Scored:
    await asyncio.sleep(30)
    raise AssertionError("the deadline did not end it")


def ticking() -> Callable[[], float]:
    ticks = iter(range(1000))
    return lambda: float(next(ticks))


def chain(*routers: Remote | RuleRouter) -> Chain:
    return Chain([*routers, DefaultRouter("b")], ticking())


async def test_the_first_router_decides() -> None:
    first = Remote(gives({"a": 1.0, "b": 0.0}))
    decided = await chain(first, Remote(stalls)).decide(ASK, WORKERS, 1)
    assert decided.router is first
    assert decided.scored.scores == {"a": 1.0, "b": 0.0}
    assert (decided.failures, decided.fail_open, decided.seconds) == ((), (), 1.0)


async def test_a_failure_is_kept_for_the_log_and_the_next_decides() -> None:
    usage = RouterUsage(5, 6, Decimal("0.1"))
    error = RouterFailed(
        "reply_ambiguous", parse_status="ambiguous", raw_reply="A or B", card_order=("b", "a"), usage=usage
    )
    first = Remote(raises(error))
    rules = RuleRouter([RuleConfig(worker="b")])
    decided = await chain(first, rules).decide(ASK, WORKERS, 1)
    assert decided.router is rules
    assert decided.failures == (
        LinkFailure("harness", first.version.id, "reply_ambiguous", 1.0, "ambiguous", "A or B", ("b", "a"), usage),
    )
    assert decided.fail_open == ("harness:reply_ambiguous",)
    assert decided.seconds == 2.0


async def test_a_slow_router_is_ended_at_its_deadline() -> None:
    started = asyncio.get_running_loop().time()
    decided = await chain(Remote(stalls, deadline=0.02, kind="learned")).decide(ASK, WORKERS, 1)
    assert decided.fail_open == ("learned:timeout",)
    assert decided.router.kind == "default"
    assert asyncio.get_running_loop().time() - started < 2


async def test_each_link_has_its_own_deadline_and_all_reasons_are_told_in_order() -> None:
    subject = chain(
        Remote(stalls, deadline=0.01, kind="learned"),
        Remote(raises(UpstreamError("rate_limited", "slow down", status=429))),
        RuleRouter([]),
    )
    decided = await subject.decide(ASK, WORKERS, 1)
    assert decided.fail_open == ("learned:timeout", "harness:rate_limited", "rule:no_rule_matched")
    assert dict(decided.scored.scores) == {"a": 0.0, "b": 1.0}


@pytest.mark.parametrize(
    "scores",
    [
        {},
        {"a": 1.0},
        {"a": 1.0, "c": 0.0},
        {"a": 1.0, "b": math.nan},
        {"a": math.inf, "b": 0.0},
        {"a": 1, "b": 0, "c": 0},
    ],
)
async def test_scores_that_are_not_finite_or_not_of_the_offered_workers_are_a_failure(scores: dict[str, float]) -> None:
    decided = await chain(Remote(gives(scores))).decide(ASK, WORKERS, 1)
    assert decided.fail_open == ("harness:bad_scores",)
    assert decided.failures[0].raw_reply == "raw"
    assert decided.router.kind == "default"


async def test_a_fault_of_our_own_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        await chain(Remote(raises(ZeroDivisionError()))).decide(ASK, WORKERS, 1)


async def test_cancelling_the_request_cancels_the_chain() -> None:
    task = asyncio.create_task(chain(Remote(stalls)).decide(ASK, WORKERS, 1))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_chain_must_end_with_the_default_router() -> None:
    for routers in ([], [RuleRouter([])], [DefaultRouter(), RuleRouter([])]):
        with pytest.raises(BrokenInvariant, match="must end with the default router"):
            Chain(routers, ticking())


def test_local_links_decide_without_suspending() -> None:
    step = chain(RuleRouter([])).decide(ASK, WORKERS, 1)
    with pytest.raises(StopIteration) as stopped:
        step.send(None)  # outside any event loop: a timer or a suspension would fail here
    assert stopped.value.value.router.kind == "default"
