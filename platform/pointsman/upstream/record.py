"""One call to a worker as it will stand in the log."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from pointsman.errors import UpstreamError
from pointsman.ids import new_id
from pointsman.pool import Endpoint, Worker
from pointsman.upstream.price import cost
from pointsman.upstream.seen import Seen
from pointsman.upstream.usage import Usage
from pointsman.words import CallStatus


@dataclass
class CallRecord:
    """Filled while the call runs. Milliseconds count from its start."""

    id: str
    worker: Worker
    endpoint: Endpoint
    attempt: int
    started_at: datetime
    started: float
    seen: Seen = field(default_factory=Seen)
    status: CallStatus = "ok"
    shown: bool = False
    http_status: int | None = None
    fault: str | None = None
    error: str | None = None
    first_token_ms: float | None = None
    latency_ms: float | None = None
    usage: Usage | None = None
    _priced: Usage | None = None  # what `_cost` is the cost of
    _cost: Decimal | None = None

    @classmethod
    def begin(cls, worker: Worker, endpoint: Endpoint, attempt: int) -> CallRecord:
        return cls(new_id(), worker, endpoint, attempt, datetime.now(UTC), time.perf_counter())

    def first_token(self) -> None:
        if self.first_token_ms is None:
            self.first_token_ms = self._elapsed()

    def finish(self, status: CallStatus = "ok") -> None:
        self.status = status
        self.latency_ms = self._elapsed()

    def fail(self, fault: UpstreamError) -> None:
        """Ends the record with a fault: before content an error, after it a truncation."""
        self.fault = fault.fault
        self.http_status = fault.status or self.http_status
        self.error = f"{fault.message}: {fault.body}" if fault.body else fault.message
        status: CallStatus = "timeout" if fault.fault == "timeout" else "error"
        self.finish("truncated" if self.first_token_ms is not None else status)

    def cancelled(self) -> None:
        self.finish("cancelled")

    def settle_usage(self, prompt_tokens: int) -> Usage | None:
        """The tokens used: the provider's count, else an estimate where anything was generated."""
        self.usage = self.seen.usage
        if self.usage is None and (self.status == "ok" or self.seen.has_content):
            self.usage = Usage.estimate(prompt_tokens, self.seen.chars)
        return self.usage

    @property
    def ending(self) -> str | None:
        """What is unusual about how a complete answer ended."""
        return None if self.seen.finish_reason else "no finish_reason"

    @property
    def cost(self) -> Decimal | None:
        """USD; 0 where nothing was used, None where tokens or price are unknown."""
        if self.usage is None:
            return Decimal(0)
        if self._priced is not self.usage:
            self._priced, self._cost = self.usage, cost(self.usage, self.worker.price)
        return self._cost

    def row(self, project_id: str, decision_id: str, request_id: str, *, store_text: bool) -> dict[str, Any]:
        """The `call` row."""
        seen, usage = self.seen, self.usage
        return {
            "id": self.id,
            "project_id": project_id,
            "decision_id": decision_id,
            "request_id": request_id,
            "worker": self.worker.name,
            "endpoint_hash": self.worker.endpoint_hash,
            "card_hash": self.worker.card_hash,
            "price_hash": self.worker.price_hash,
            "attempt": self.attempt,
            "started_at": self.started_at,
            "base_url": self.endpoint.base_url,
            "provider_model": seen.model,
            "completion": seen.completion if store_text else None,
            "reasoning": seen.reasoning if store_text else None,
            "tool_calls": seen.tool_calls if store_text else None,
            "completion_id": seen.completion_id,
            "finish_reason": seen.finish_reason,
            "status": self.status,
            "http_status": self.http_status,
            "fault": self.fault,
            "error": self.error,
            "input_tokens": usage.input if usage else None,
            "cached_tokens": usage.cached if usage else None,
            "output_tokens": usage.output if usage else None,
            "reasoning_tokens": usage.reasoning if usage else None,
            "usage_estimated": usage.estimated if usage else False,
            "cost": self.cost,
            "first_token_ms": self.first_token_ms,
            "latency_ms": self.latency_ms,
        }

    def _elapsed(self) -> float:
        return round((time.perf_counter() - self.started) * 1000, 3)
