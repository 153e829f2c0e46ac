"""One request from its decision on: the answer relayed to the client, and the one outcome that ends it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from harness.gateway.access import Caller
from harness.gateway.cache import CachedAnswer
from harness.gateway.decide import Decision
from harness.gateway.recent import Entry
from harness.gateway.request import ChatRequest
from harness.gateway.responses import (
    Headers,
    Send,
    error_event,
    send_error,
    send_events,
    send_json,
    start_events,
)
from harness.gateway.rows import outcome_row
from harness.gateway.spending import settle
from harness.gateway.state import State
from harness.gateway.stream import relay_stream
from harness.gateway.surfaces.base import Surface, Teller, Voice
from harness.gateway.usage import with_orchestration
from pointsman.budgets import Reservation
from pointsman.errors import RequestError, UpstreamError
from pointsman.journal.lines import TableRow
from pointsman.upstream.reading import Answer
from pointsman.upstream.record import CallRecord
from pointsman.words import OutcomeStatus

if TYPE_CHECKING:
    from harness.gateway.tracing import Trace

STALLED_SECONDS = 5.0
"""A stream that has shown nothing for so long when its client leaves is logged as stalled."""


class Exchange:
    """Holds what one request needs until it has ended. `records` are its calls, in order.

    `teller` is who tells its stream, once that has begun, where the surface has words of its own.
    """

    def __init__(
        self,
        state: State,
        caller: Caller,
        request: ChatRequest,
        decision: Decision,
        began: float,
        surface: Surface,
        voice: Voice | None,
        reservation: Reservation,
    ) -> None:
        self.state = state
        self.surface = surface
        self.voice = voice
        self.reservation = reservation
        self.teller: Teller | None = None
        self.caller = caller
        self.request = request
        self.decision = decision
        self.records: list[CallRecord] = []
        self.ended = False
        self.streaming = False
        self.answer: Answer | None = None
        self.ticket = 0  # of the decision in the journal
        self.trace: Trace | None = None
        self.cache_key: str | None = None  # under which a whole answer may be given again
        self._began = began
        self._overhead_ms = 0.0
        total = decision.generation.config.timeouts.total
        left = min(request.hints.deadline or total, total) - (time.perf_counter() - began)
        self.deadline = asyncio.get_running_loop().time() + left

    def begin(self, rows: list[TableRow]) -> None:
        """The decision goes to the journal; its sync starts at once and runs beside the call."""
        decision, caller = self.decision, self.caller
        opens = (decision.id, caller.project_id, decision.episode.id)
        self.ticket = self.state.journal.append(rows, opens=opens)
        by_table = dict(rows)
        entry = Entry(
            caller.project_id,
            decision.episode.id,
            self.request.size,
            by_table["decision"],
            request=by_table["request"],
        )
        self.state.recent.add(decision.id, entry)
        elapsed = time.perf_counter() - self._began
        self._overhead_ms = round(elapsed * 1000, 3)
        self.state.metrics.overhead.observe(elapsed)
        for reason in by_table["decision"].get("fail_open") or ():
            self.state.metrics.fail_open(reason)

    async def relay(self, send: Send) -> None:
        """Sends the answer; the decision is on disk by now."""
        answer = self.answer
        assert answer is not None
        if answer.body is not None:
            await self._relay_json(answer, answer.body, send)
            return
        self.streaming = True
        if self.voice is not None:
            self.teller = self.voice.stream()
        await start_events(send, self.headers())
        await relay_stream(self, answer, send)

    def client_left(self) -> None:
        """The client closed its connection: the call upstream ends too, and what came so far is logged."""
        record = self.records[-1] if self.records else None
        if record is None or record.first_token_ms is not None or not self.request.stream:
            self.end("client_cancelled", reason="the client left", client_closed=True)
            return
        # A worker's silence must not hide behind the patience of its clients.
        silent = time.perf_counter() - record.started
        if silent >= STALLED_SECONDS:
            record.fault = "stalled"
        reason = f"the client left after {silent:.1f} s without a first token"
        self.end("client_cancelled", reason=reason, client_closed=True)

    async def refuse(self, error: RequestError, status: OutcomeStatus, send: Send, *, reason: str) -> None:
        """No worker answered: a real HTTP status, and the decision's headers all the same."""
        self.end(status, reason=reason, http_status=error.status)
        await self._send_error(send, error)

    async def stopped(self, send: Send) -> None:
        """The process stops while this runs: an error in the stream where one has begun."""
        self.end("truncated" if self.streaming else "upstream_error", reason="the gateway stopped")
        error = RequestError("the gateway stopped", status=503, type="server_error", code="stopping", retry_after=1)
        if self.streaming:
            await send_events(send, self.error_event(error), more=False)
        else:
            await self._send_error(send, error)

    def error_event(self, error: RequestError) -> bytes:
        """An error in the middle of the stream; nothing that says the answer is whole follows it."""
        return error_event(error) if self.teller is None else self.teller.fail(error)

    def close(self) -> None:
        """Ends the call upstream if it still runs."""
        if self.answer is not None:
            self.answer.close()

    def headers(self) -> Headers:
        decision = self.decision
        worker = self.records[-1].worker.name if self.records else decision.draw.chosen
        return [
            (b"x-pointsman-decision-id", decision.id.encode()),
            (b"x-pointsman-episode-id", decision.episode.id.encode()),
            (b"x-pointsman-worker", worker.encode()),
            (b"x-pointsman-router", decision.router.encode()),
            (b"x-pointsman-pattern", b"single"),
            (b"x-pointsman-propensity", b"%.6g" % decision.propensity),
        ]

    def end(
        self,
        status: OutcomeStatus,
        *,
        reason: str | None = None,
        client_closed: bool = False,
        http_status: int | None = None,
    ) -> None:
        """Writes the calls and the outcome, once."""
        if self.ended:
            return
        self.ended = True
        state, decision, caller = self.state, self.decision, self.caller
        if self.records and self.records[-1].latency_ms is None:
            self.records[-1].cancelled()
        stored = decision.generation.config.log.store_text and self.request.store
        calls = [self._call_row(record, stored) for record in self.records]
        settle(self.reservation, decision, self.records)
        answered = self.records[-1].worker.name if self.records else None
        latency = time.perf_counter() - self._began
        outcome = outcome_row(
            decision.id,
            caller,
            status,
            episode_id=decision.episode.id,
            records=self.records,
            worker=answered,
            reason=reason,
            client_closed=client_closed,
            http_status=http_status,
            latency_ms=round(latency * 1000, 3),
            overhead_ms=self._overhead_ms,
        )
        rows: list[TableRow] = [("call", row) for row in calls]
        rows.append(("outcome", outcome))
        state.journal.append_or_count(rows, closes=decision.id)
        state.recent.end(decision.id, calls, outcome, sum(record.seen.chars for record in self.records))
        state.metrics.ended(status, answered or "none")
        state.metrics.calls += len(self.records)
        state.metrics.latency.observe(latency)
        if self.trace is not None:
            self.trace.decided(
                decision, self.surface.name, status, model=self.request.model, seconds=latency,
                records=self.records, http_status=http_status,
            )  # fmt: skip
        if status == "ok" and answered is not None:
            state.note_latency(answered, latency * 1000)
        # Agents close a stream as soon as they have their tool call, and come back with its result.
        spoke = answered is not None and (status == "ok" or self.records[-1].seen.has_content)
        if answered is not None and spoke and not self.request.embeddings:
            state.episodes.answered(caller, decision.episode, answered, self.records[-1].seen.tool_call_ids)

    async def _relay_json(self, answer: Answer, body: bytes, send: Send) -> None:
        if (orchestration := self.orchestration()) is not None:
            body = with_orchestration(body, orchestration)
        if self.voice is not None:
            body = self._told(self.voice, body, answer.record)
        ending = None if self.request.embeddings else answer.record.ending
        self.end("ok", reason=ending, http_status=200)
        if self.cache_key is not None and ending is None:
            known = CachedAnswer(body, answer.worker.name, self.decision.id)
            self.state.cache.put(self.cache_key, known)
        await send_json(send, 200, body, self.headers())

    def _told(self, voice: Voice, body: bytes, record: CallRecord) -> bytes:
        try:
            return voice.whole(body)
        except UpstreamError as fault:
            record.fail(fault)
            raise

    async def _send_error(self, send: Send, error: RequestError) -> None:
        await send_error(send, error, self.headers(), self.surface.error_body(error))

    def orchestration(self) -> tuple[int, int] | None:
        """Tokens (in, out) that routing took, None where it took none."""
        usages = self.decision.usages
        if not usages:
            return None
        tokens = sum(u.input_tokens or 0 for u in usages), sum(u.output_tokens or 0 for u in usages)
        return tokens if any(tokens) else None

    def _call_row(self, record: CallRecord, stored: bool) -> dict[str, Any]:
        record.settle_usage(self.request.prompt_tokens)
        decision = self.decision
        row = record.row(self.caller.project_id, decision.id, decision.request_id, store_text=stored)
        redactor = self.state.redactor
        row["completion"] = redactor.text(row["completion"])
        row["reasoning"] = redactor.text(row["reasoning"])
        row["tool_calls"] = redactor.value(row["tool_calls"])
        # A provider's error may quote the request.
        row["error"] = redactor.text(row["error"]) if stored else record.fault
        return row
