"""One run: begins what its pattern names, holds it to its limits, and brings it to one end whatever happens.

Everything happens in one event loop. A node is a task; when one is over the pattern is asked what may run now. So
independent nodes run at the same time, and nothing waits for who reads the events.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from harness.engine.acts import Act, End, Policy, Reading
from harness.engine.closing import answered, failed, state_item, tool_items
from harness.engine.events import Delta, Done, Event, Failed, Progress
from harness.engine.limits import Limits, Purse
from harness.engine.nodes import Work
from harness.engine.request import Message
from harness.engine.rows import decision_row, outcome_row
from harness.engine.state import Node, State
from pointsman.errors import BrokenInvariant
from pointsman.ids import new_id
from pointsman.upstream.attempts import TICK_SECONDS
from pointsman.words import OutcomeStatus

if TYPE_CHECKING:
    from harness.engine.engine import Engine

DEFAULT_SECONDS = 600.0
"""The longest that one call may take where the run has no deadline."""


class Run:
    """`events` are for the one who asked; an exception among them is a fault of ours, or the log's."""

    def __init__(self, engine: Engine, policy: Policy, state: State, limits: Limits, stream: bool) -> None:
        self.engine = engine
        self.policy = policy
        self.state = state
        self.limits = limits
        self.stream = stream
        self.events: asyncio.Queue[Event | BaseException] = asyncio.Queue()
        self.purse = Purse(limits, engine.pool.workers)
        self.closing: str | None = None  # the limit that was reached
        self.told = False  # a piece of the answer has gone out
        self._held: list[Delta] = []
        self.ended = False
        self.broken_off: tuple[OutcomeStatus, str] | None = None  # how what still runs ends, if from outside
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._last: asyncio.Task[None] | None = None
        self._began = time.perf_counter()
        self._root_open = False
        hashes = {"pool_hash": engine.pool.hash, "cards_hash": engine.pool.cards_hash}
        self.hashes: Mapping[str, str | None] = hashes

    @property
    def call_deadline(self) -> float:
        return self._loop.time() + DEFAULT_SECONDS if self.limits.deadline is None else self.limits.deadline

    def begin(self, root: Mapping[str, Any] | None, results: Mapping[str, str], extra: Sequence[Message]) -> None:
        """Opens the root and begins; a resumed run first goes on with the nodes that waited."""
        if self.policy.team:
            self._open_root(root, resumed=bool(self.state.nodes))
        for node in self.state.waiting:
            self._start(node.key, partial(Work(self, node).go_on, results, extra))
        self.advance()

    def advance(self) -> None:
        """Asks the pattern what may run now."""
        if self.ended:
            return
        moves = self.policy.next(self.state) if self.closing is None else ()
        if isinstance(moves, End):
            self._end(moves)
            return
        fresh = [act for act in moves if act.key not in self.state.nodes]
        if fresh and (limit := self._limit()) is not None:
            self.closing, fresh = limit, []
        for act in fresh:
            self._start_act(act)
        if not self._tasks:
            self._settle_down()

    def tell(self, event: Event) -> None:
        """Tells an event. White space is held back until there is something behind it: alone it is no answer."""
        if isinstance(event, Delta) and not self.told:
            self._held.append(event)
            if not event.text.strip():
                return
            self.told = True
            for held in self._held:
                self.events.put_nowait(held)
            return
        self.events.put_nowait(event)

    def read(self, node: Node) -> Reading | None:
        """A node that is over, and what the pattern makes of it."""
        if node.status == "open":
            node.status = "done"
        reading = self.policy.read(self.state, node)
        if reading is not None:
            node.reason, node.score = reading.reason, reading.score
            node.data = {**node.data, **reading.data}
        return reading

    def parent_id(self, key: str | None) -> str | None:
        """The decision above a node: another node's, where that one is of this request, else the root's."""
        above = self.state.get(key) if key is not None else None
        if above is not None and above.request_id == self.state.request.id:
            return above.id
        return self.state.request.root_id if self.policy.team else None

    async def stop(self, status: OutcomeStatus, reason: str) -> None:
        """Ends all that runs, and waits for it: every connection is closed when this returns."""
        if not self.ended:
            self.broken_off = (status, reason)
        self.ended = True
        running = [*self._tasks.values(), *([self._last] if self._last else [])]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._close_root(status, reason=reason)

    def _start_act(self, act: Act) -> None:
        request = self.state.request
        own = request.root_id if not self.policy.team else new_id()
        node = Node(act.key, own, request.id, act.kind, act.turn, act.step, act.parent)
        self.state.nodes[act.key] = node
        if act.title:
            self.tell(Progress(act.key, act.title))
        self._start(act.key, partial(Work(self, node).begin, act))

    def _start(self, key: str, work: Callable[[], Awaitable[None]]) -> None:
        task = self._tasks[key] = self._loop.create_task(self._work(key, work))
        task.add_done_callback(self._report)

    async def _work(self, key: str, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        finally:
            self._tasks.pop(key, None)
        self.advance()

    def _report(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.events.put_nowait(error)

    def _limit(self) -> str | None:
        deadline = self.limits.deadline
        if deadline is not None and self._loop.time() >= deadline - TICK_SECONDS:
            return "deadline"
        return self.purse.spent()

    def _settle_down(self) -> None:
        """Nothing runs and nothing begins: a limit was reached, or the client's tools are waited for."""
        if self.closing is not None:
            self._end(End(self.policy.answer(self.state), f"limit: {self.closing}"))
        elif self.state.waiting:
            self._end(None)
        else:
            raise BrokenInvariant(f"the pattern {self.policy.name} neither begins anything nor ends")

    def _end(self, end: End | None) -> None:
        """None: the run waits. What still runs is not needed any more."""
        self.ended = True
        for task in self._tasks.values():
            task.cancel()
        self._last = self._loop.create_task(self._finish(end))
        self._last.add_done_callback(self._report)

    async def _finish(self, end: End | None) -> None:
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        state = self.state
        totals, tree = self.purse.totals, tuple(state.nodes.values())
        if end is None:
            await self.engine.keep([state_item(state)])
            done: Done | Failed = answered(state, None, "tool_calls", totals, tree)
        else:
            node = state.get(end.answer) if end.answer is not None else None
            done = (
                failed(state, end.reason, totals, tree, told=self.told)
                if node is None or node.status != "done" or (self.told and not node.final)
                else answered(state, node, end.reason, totals, tree)
            )
            await self.engine.keep(self.policy.keepsakes(state))
        if isinstance(done, Done):
            if done.answer and not self.told:
                self._held.clear()
                self.tell(Delta(done.answer))
            self._close_root("ok", worker=done.worker, reason=done.reason)
        else:
            self._close_root(done.status, reason=done.reason)
        self.tell(done)

    async def remember(self, node: Node, results: Mapping[str, str]) -> None:
        """Keeps tool calls and their results for the episode's later workflows."""
        if self.policy.recalls and self.state.request.store:
            await self.engine.keep(tool_items(self.state, node, results))

    def _open_root(self, given: Mapping[str, Any] | None, *, resumed: bool) -> None:
        name = self.policy.name
        root = Node("root", self.state.request.root_id, self.state.request.id, "pattern")
        forced = {
            "eligible": {name: None},
            "probabilities": {name: 1.0},
            "chosen": name,
            "propensity": 1.0,
            "forced": "sticky" if resumed else "direct",
            "flags": ["resumed"] if resumed else None,
        }
        self.engine.log.open({**decision_row(self.state, root, None, self.hashes), **forced, **(given or {})})
        self._root_open = True

    def _close_root(self, status: OutcomeStatus, *, worker: str | None = None, reason: str | None = None) -> None:
        if not self._root_open:
            return
        self._root_open = False
        totals = self.purse.totals
        took = round((time.perf_counter() - self._began) * 1000, 3)
        row = outcome_row(
            self.state, self.state.request.root_id, status, worker=worker, reason=reason,
            calls=totals.calls, cost=totals.cost, latency_ms=took,
        )  # fmt: skip
        self.engine.log.outcome(row)
