"""How the engine calls a worker. Two implementations: over HTTP (`upstream_workers`), and a plain function below."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Protocol

from harness.engine.events import Delta
from harness.engine.request import Message, tokens_of
from pointsman.errors import UpstreamError
from pointsman.ids import new_id
from pointsman.pool import Worker
from pointsman.upstream.price import cost
from pointsman.upstream.usage import Usage
from pointsman.words import CallPurpose

CallRow = dict[str, Any]
"""A `call` row without what the engine adds: project, decision, request, messages, purpose."""

Sink = Callable[[Delta], None]


@dataclass(frozen=True)
class CallResult:
    """What came back. `worker` answered, or was asked last; with a `fault` there may still be the text so far."""

    worker: str
    text: str | None = None
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    finish_reason: str | None = None
    usage: Usage | None = None
    cost: Decimal | None = Decimal(0)
    latency_ms: float = 0.0
    first_token_ms: float | None = None
    fault: UpstreamError | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


class Workers(Protocol):
    """Calls workers. Where a call is cancelled its connection closes and its row is still in `rows`."""

    async def call(
        self,
        worker: Worker,
        messages: list[Message],
        *,
        stream: Sink | None,
        tools: Sequence[dict[str, Any]],
        deadline: float,
        purpose: CallPurpose,
        fields: Mapping[str, Any],
        fallbacks: Sequence[Worker],
        rows: list[CallRow],
    ) -> CallResult:
        """`stream` gets the reply's pieces as they come. `rows` gets one row per provider request, failed ones too.

        `fallbacks` answer, in their order, where `worker` cannot. Never raises `UpstreamError`: it is in the result.
        """
        ...


Reply = str | CallResult
Answering = Callable[[str, list[Message], Sequence[dict[str, Any]]], Awaitable[Reply]]
"""(worker's name, messages, tools) → its reply. For rollouts: no HTTP, no retries, no fallbacks."""


class LocalWorkers:
    """Workers that are a function in this process. Tokens are counted by `count` where the function gives none."""

    def __init__(self, answering: Answering, count: Callable[[str], int] = lambda text: (len(text) + 3) // 4) -> None:
        self._answering = answering
        self._count = count

    async def call(
        self,
        worker: Worker,
        messages: list[Message],
        *,
        stream: Sink | None,
        tools: Sequence[dict[str, Any]],
        deadline: float,
        purpose: CallPurpose,
        fields: Mapping[str, Any],
        fallbacks: Sequence[Worker],
        rows: list[CallRow],
    ) -> CallResult:
        started_at, began = datetime.now(UTC), time.perf_counter()
        row: CallRow = {"id": new_id(), "worker": worker.name, "started_at": started_at, "status": "cancelled"}
        rows.append(row)
        try:
            reply = await self._answering(worker.name, messages, tools)
        except UpstreamError as fault:
            reply = CallResult(worker.name, fault=fault, cost=Decimal(0))
        result = reply if isinstance(reply, CallResult) else self._counted(worker, messages, reply)
        latency = round((time.perf_counter() - began) * 1000, 3)
        result = replace(result, worker=worker.name, latency_ms=latency)
        row |= _row(worker, result, latency)
        if stream is not None and result.text and result.fault is None:
            stream(Delta(result.text))
        return result

    def _counted(self, worker: Worker, messages: list[Message], text: str) -> CallResult:
        usage = Usage(tokens_of(messages, {}), max(1, self._count(text)), estimated=True)
        return CallResult(worker.name, text, usage=usage, cost=cost(usage, worker.price), finish_reason="stop")


def _row(worker: Worker, result: CallResult, latency: float) -> CallRow:
    usage, fault = result.usage, result.fault
    return {
        "endpoint_hash": worker.endpoint_hash,
        "card_hash": worker.card_hash,
        "price_hash": worker.price_hash,
        "completion": result.text,
        "tool_calls": result.tool_calls or None,
        "finish_reason": result.finish_reason,
        "status": "ok" if fault is None else "timeout" if fault.fault == "timeout" else "error",
        "fault": fault.fault if fault else None,
        "error": fault.message if fault else None,
        "input_tokens": usage.input if usage else None,
        "output_tokens": usage.output if usage else None,
        "usage_estimated": usage.estimated if usage else False,
        "cost": result.cost,
        "latency_ms": latency,
    }
