"""The engine: runs any pattern over workers, deciders and a log, and tells what happens as events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import msgspec

from harness.engine.acts import Policy
from harness.engine.deciders import Deciders
from harness.engine.events import Done, Event, Failed
from harness.engine.limits import Limits
from harness.engine.log import Log
from harness.engine.memory import Item, LocalMemory, Memory
from harness.engine.request import Message, Request
from harness.engine.run import Run
from harness.engine.state import State
from harness.engine.workers import Workers
from harness.routing.eligibility import Eligibility
from pointsman.errors import BrokenInvariant
from pointsman.pool import Pool
from pointsman.words import OutcomeStatus

NO_LIMITS = Limits()
Ended = tuple[OutcomeStatus, str]
CLIENT_LEFT: Ended = ("client_cancelled", "the client left")


class Engine:
    """Bound to what one request (or one rollout) may use; holds nothing between runs.

    `eligible` says who may be chosen at this moment: health changes while a tree runs. `memory` is absent where
    nothing is to be remembered. `left` says why a run was broken off from outside.
    """

    def __init__(
        self,
        pool: Pool,
        workers: Workers,
        deciders: Deciders,
        log: Log,
        eligible: Callable[[], Eligibility] | None = None,
        memory: Memory | None = None,
        left: Callable[[], Ended] = lambda: CLIENT_LEFT,
    ) -> None:
        self.pool = pool
        self.workers = workers
        self.deciders = deciders
        self.log = log
        self.eligible = eligible or (lambda: everybody(pool))
        self.memory: Memory = memory or LocalMemory()
        self.left = left

    async def run(
        self,
        policy: Policy,
        request: Request,
        limits: Limits = NO_LIMITS,
        *,
        stream: bool = False,
        root: Mapping[str, Any] | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Answers `request`. The last event is `Done` or `Failed`; closing the generator cancels all that runs.

        With `stream` the last call's reply is told as it comes. `root` has columns for the root decision where the
        pattern was chosen rather than named.
        """
        state = State(request, policy.kind, policy.name)
        if policy.recalls:
            recalled = await self.memory.recall(request.project_id, request.episode_id, policy.recalls)
            state.recalled = recalled
            state.workflow = 1 + max((item.workflow for item in recalled), default=0)
        async with aclosing(self._events(Run(self, policy, state, limits, stream), root, {}, ())) as events:
            async for event in events:
                yield event

    async def resume(
        self,
        policy: Policy,
        state: State,
        request: Request,
        results: Mapping[str, str],
        limits: Limits = NO_LIMITS,
        *,
        extra: Sequence[Message] = (),
        stream: bool = False,
    ) -> AsyncGenerator[Event, None]:
        """Goes on with a run that waited for its client's tools.

        `request` is the new one (its ids, its fields); what the workers saw stays what it was. `results` are by the
        tool-call ids that the client was given; a call without one is told so. `extra` are messages that came
        behind the results: the workers that waited see them too.
        """
        old = state.request
        state.request = msgspec.structs.replace(request, messages=old.messages, ask=old.ask)
        async with aclosing(self._events(Run(self, policy, state, limits, stream), None, results, extra)) as events:
            async for event in events:
                yield event

    async def suspended(self, project_id: str, tool_call_ids: Sequence[str]) -> State | None:
        """The run that waits for the results of these tool calls, if it is one of this project's."""
        return self.revived(await self.memory.waiting(project_id, tool_call_ids))

    @staticmethod
    def revived(item: Item | None) -> State | None:
        """The run that an item of memory holds."""
        if item is None:
            return None
        try:
            return msgspec.convert(item.content, State, strict=False)
        except msgspec.ValidationError:
            return None  # of another version: the client's conversation goes on as a new request

    async def keep(self, items: Sequence[Item]) -> None:
        if items:
            await self.memory.keep(items)

    async def _events(
        self, run: Run, root: Mapping[str, Any] | None, results: Mapping[str, str], extra: Sequence[Message]
    ) -> AsyncGenerator[Event, None]:
        ours: Ended | None = None
        try:
            run.begin(root, results, extra)
            while True:
                event = await run.events.get()
                if isinstance(event, BaseException):
                    ours = ("upstream_error", f"a fault in the engine: {type(event).__name__}")
                    raise event
                await self.log.synced()
                yield event
                if isinstance(event, Done | Failed):
                    return
        finally:
            await run.stop(*(ours or self.left()))


async def final(events: AsyncGenerator[Event, None]) -> Done | Failed:
    """Runs to the end, for callers that want nothing but the answer."""
    async with aclosing(events) as told:
        async for event in told:
            if isinstance(event, Done | Failed):
                return event
    raise BrokenInvariant("a run ended without Done or Failed")


def everybody(pool: Pool) -> Eligibility:
    """All workers of the pool."""
    return Eligibility(dict.fromkeys(pool.by_name), False, pool.workers)
