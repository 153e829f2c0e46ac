"""What happens to one node: its worker is chosen, the decision logged, the call made, the reply read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from harness.engine import rows
from harness.engine.acts import Act, Call
from harness.engine.choosing import choose
from harness.engine.events import CallEnded, CallStarted, Decided
from harness.engine.exchange import assistant_message, result_messages, with_own_ids
from harness.engine.request import Message, tokens_of
from harness.engine.state import Node
from harness.engine.workers import CallResult, CallRow
from harness.routing.exploration import forced
from pointsman.ids import new_id
from pointsman.pool import Worker
from pointsman.upstream.price import add
from pointsman.words import OutcomeStatus

if TYPE_CHECKING:
    from harness.engine.run import Run

UNNEEDED = "not needed any more"
_REFUSED = ("no_worker", "bad_request", "context_exceeded")


class Work:
    """One node at work. It ends with exactly one outcome if its decision was opened, whatever ends it."""

    def __init__(self, run: Run, node: Node) -> None:
        self._run = run
        self._node = node
        self._rows: list[CallRow] = []
        self._opened = False
        self._began = time.perf_counter()

    async def begin(self, act: Act) -> None:
        """Decides, logs, calls."""
        await self._guarded(self._do(act))

    async def go_on(self, results: Mapping[str, str], extra: Sequence[Message]) -> None:
        """A node that waited, with its client's results: a decision of its own, the worker stays."""
        await self._run.remember(self._node, results)
        await self._guarded(self._do_again(results, extra))

    async def _guarded(self, doing: Awaitable[None]) -> None:
        node = self._node
        try:
            async with asyncio.timeout_at(self._run.limits.deadline):
                await doing
        except TimeoutError:
            node.status, node.fault, node.reason = "failed", "timeout", "the run's deadline passed"
        except asyncio.CancelledError:
            node.status, node.fault = "failed", "cancelled"
            raise
        finally:
            if self._opened:
                self._close()

    async def _do(self, act: Act) -> None:
        run, node = self._run, self._node
        chosen = await choose(run, act, node)
        if chosen is None:
            return
        self._open(chosen.row | ({"plan": dict(act.plan)} if act.plan is not None else {}))
        if chosen.call is not None:
            run.engine.log.call(chosen.call)
        elif act.call is not None:
            await self._call(act.call(node))
        else:
            run.read(node)

    async def _do_again(self, results: Mapping[str, str], extra: Sequence[Message]) -> None:
        run, node = self._run, self._node
        messages = [*node.messages, assistant_message(node), *result_messages(node, results), *extra]
        worker = node.answered_by or node.worker or ""
        node.id, node.request_id, node.status = new_id(), run.state.request.id, "open"
        node.worker = node.chosen = worker
        node.tool_calls, node.issued = [], {}
        eligible = run.engine.eligible().reasons
        self._open({"eligible": eligible, **rows.drawn(forced(worker, "sticky")), "role": node.role})
        await self._call(Call(messages, node.answers, node.final, node.tools, node.own_tools, node.purpose, node.keep))

    def _open(self, row: rows.Row) -> None:
        run, node = self._run, self._node
        base = rows.decision_row(run.state, node, run.parent_id(node.parent), run.hashes)
        run.engine.log.open(base | row)
        self._opened = True
        told = (node.kind, node.chosen, node.role, node.propensity, node.turn, node.step)
        run.tell(Decided(node.key, node.id, *told))

    async def _call(self, call: Call) -> None:
        run, node = self._run, self._node
        node.answers, node.final, node.tools, node.keep = call.answers, call.final, call.tools, call.keep
        node.purpose, tools, messages = call.purpose, call.own_tools, call.messages
        candidates = self._candidates(alone=call.alone)
        if not candidates:
            node.status, node.fault, node.reason = "failed", "no_worker", f"{node.worker} may not be called"
            return
        node.messages = messages(candidates[0]) if callable(messages) else messages
        node.own_tools = []
        if "tools" in candidates[0].capabilities:
            node.own_tools = list(tools(run.engine.eligible().workers) if callable(tools) else tools)
        if node.own_tools:
            candidates = [worker for worker in candidates if "tools" in worker.capabilities]
        fields = run.state.request.fields_for(answers=call.answers, tools=call.tools) | dict(call.fields)
        tools = [*(fields.pop("tools", None) or ()), *node.own_tools]
        taken = tokens_of(node.messages, {"tools": tools} if tools else {})
        output = run.state.request.output_tokens if call.answers else 0
        if (limit := run.purse.hold(node.key, candidates[0], taken, output)) is not None:
            run.closing = run.closing or limit
            node.status, node.fault, node.reason = "failed", f"limit_{limit}", f"limit: {limit}"
            return
        run.tell(CallStarted(node.key, candidates[0].name))
        try:
            result = await run.engine.workers.call(
                candidates[0],
                node.messages,
                stream=run.tell if call.final and run.stream else None,
                tools=tools,
                deadline=run.call_deadline,
                purpose=call.purpose,
                fields=fields,
                fallbacks=candidates[1:],
                rows=self._rows,
            )
        finally:
            tokens, node.cost = _used(self._rows)
            run.purse.settle(node.key, len(self._rows), tokens, node.cost)
        self._take(result)

    def _candidates(self, *, alone: bool) -> list[Worker]:
        """The intended worker, if it may be called at all, then who may stand in."""
        engine, node = self._run.engine, self._node
        by_name, reasons = engine.pool.by_name, engine.eligible().reasons
        names = [node.worker or "", *(() if alone else node.fallbacks)]
        return [by_name[name] for name in names if name in by_name and reasons.get(name) in (None, "unhealthy")]

    def _take(self, result: CallResult) -> None:
        """The reply into the node: over, or waiting for the client's tools."""
        run, node, usage, fault = self._run, self._node, result.usage, result.fault
        node.answered_by, node.text = result.worker, result.text
        node.data = {**node.data, "finish_reason": result.finish_reason}
        if usage is not None:
            node.input_tokens, node.output_tokens, node.cached_tokens = usage.input, usage.output, usage.cached
        word = fault.fault if fault else None
        run.tell(CallEnded(node.key, result.worker, word, node.input_tokens, node.output_tokens, result.latency_ms))
        if fault is not None:
            node.status, node.fault, node.reason = "failed", fault.fault, fault.message
            return
        node.tool_calls = result.tool_calls
        if run.policy.team and result.tool_calls and not _own(node):
            node.tool_calls, node.issued = with_own_ids(result.tool_calls)
            node.status, node.reason = "waiting", "tool_calls"
            return
        run.read(node)

    def _close(self) -> None:
        run, node = self._run, self._node
        for row in self._rows:
            run.engine.log.call(rows.call_row(run.state, node, row, node.messages, node.purpose))
        status, reason = self._status(), node.reason
        if node.fault == "cancelled":
            status, reason = run.broken_off or ("truncated", UNNEEDED)
        outcome = rows.outcome_row(
            run.state,
            node.id,
            status,
            worker=node.answered_by or node.worker,
            reason=reason,
            score=node.score,
            calls=len(self._rows),
            cost=node.cost,
            first_token_ms=self._rows[-1].get("first_token_ms") if self._rows else None,
            latency_ms=round((time.perf_counter() - self._began) * 1000, 3),
        )
        run.engine.log.outcome(outcome)
        if node.over and not node.keep:
            node.messages = []

    def _status(self) -> OutcomeStatus:
        node = self._node
        if node.status in ("done", "waiting"):
            return "ok"
        if node.fault == "timeout":
            return "timeout"
        if node.fault == "truncated":
            return "truncated"
        refused = node.fault in _REFUSED or str(node.fault).startswith("limit_")
        return "rejected" if refused else "upstream_error"


def _own(node: Node) -> bool:
    """Whether the reply calls one of the pattern's own tools."""
    names = {tool["function"]["name"] for tool in node.own_tools}
    return any(call["function"]["name"] in names for call in node.tool_calls)


def _used(made: Sequence[CallRow]) -> tuple[tuple[int, int, int], Decimal | None]:
    """(in, out, cached) tokens and USD of all attempts."""
    given, answered, cached = (
        sum(row.get(name) or 0 for row in made) for name in ("input_tokens", "output_tokens", "cached_tokens")
    )
    cost: Decimal | None = Decimal(0)
    for row in made:
        cost = add(cost, row.get("cost", Decimal(0)))
    return (given, answered, cached), cost
