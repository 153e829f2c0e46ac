"""One request from its decision on: the answer relayed to the client, and the one outcome that ends it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec

from harness.gateway.access import Caller
from harness.gateway.decide import Decision
from harness.gateway.recent import Entry
from harness.gateway.request import ChatRequest
from harness.gateway.responses import (
    Headers,
    Send,
    error_event,
    from_upstream,
    send_error,
    send_events,
    send_json,
    start_events,
)
from harness.gateway.rows import outcome_row
from harness.gateway.state import State
from pointsman.database.clean import clean_json
from pointsman.errors import RequestError, UpstreamError
from pointsman.journal.lines import TableRow
from pointsman.upstream.attempts import Answer
from pointsman.upstream.record import CallRecord
from pointsman.upstream.seen import Seen
from pointsman.upstream.sse import event_data
from pointsman.words import OutcomeStatus

DONE_EVENT = b"data: [DONE]\n\n"


class Exchange:
    """Holds what one request needs until it has ended. `records` are its calls, in order."""

    def __init__(self, state: State, caller: Caller, request: ChatRequest, decision: Decision, began: float) -> None:
        self.state = state
        self.caller = caller
        self.request = request
        self.decision = decision
        self.records: list[CallRecord] = []
        self.ended = False
        self.streaming = False
        self._began = began
        self._answer: Answer | None = None
        self._overhead_ms = 0.0
        total = decision.generation.config.timeouts.total
        self.deadline = asyncio.get_running_loop().time() + min(request.hints.deadline or total, total)

    def begin(self, rows: list[TableRow]) -> None:
        """The decision goes to the journal; its sync starts at once and runs beside the call."""
        decision, caller = self.decision, self.caller
        self.state.journal.append(rows, opens=(decision.id, caller.project_id, decision.episode.id))
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
        for reason in decision.decided.fail_open if decision.decided else ():
            self.state.metrics.fail_open(reason)

    async def relay(self, answer: Answer, send: Send) -> None:
        """Sends the answer; the decision is on disk by now."""
        self._answer = answer
        if answer.body is not None:
            await self._relay_json(answer, send)
        else:
            await self._relay_stream(answer, send)

    async def refuse(self, error: RequestError, status: OutcomeStatus, send: Send, *, reason: str) -> None:
        """No worker answered: a real HTTP status, and the decision's headers all the same."""
        self.end(status, reason=reason, http_status=error.status)
        await send_error(send, error, self.headers())

    async def stopped(self, send: Send) -> None:
        """The process stops while this runs: an error in the stream where one has begun."""
        self.end("truncated" if self.streaming else "upstream_error", reason="the gateway stopped")
        error = RequestError("the gateway stopped", status=503, type="server_error", code="stopping", retry_after=1)
        if self.streaming:
            await send_events(send, error_event(error), more=False)
        else:
            await send_error(send, error, self.headers())

    def close(self) -> None:
        """Ends the call upstream if it still runs."""
        if self._answer is not None:
            self._answer.close()

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
        if client_closed and self.records and self.records[-1].latency_ms is None:
            self.records[-1].cancelled()
        stored = decision.generation.config.log.store_text and self.request.store
        calls = [self._call_row(record, stored) for record in self.records]
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
        state.recent.end(decision.id, calls, outcome)
        state.metrics.ended(status, answered or "none")
        state.metrics.calls.inc(len(self.records))
        state.metrics.latency.observe(latency)
        if status == "ok" and answered is not None:
            state.note_latency(answered, latency * 1000)
            tool_calls = self.records[-1].seen.tool_calls or ()
            state.episodes.answered(caller, decision.episode, answered, [str(call["id"]) for call in tool_calls])

    async def _relay_json(self, answer: Answer, send: Send) -> None:
        body = answer.body
        assert body is not None
        seen = answer.record.seen
        if seen.unclean:
            body = clean_json(body).encode()
        if (orchestration := self._orchestration()) is not None:
            body = _with_orchestration(body, orchestration)
        self.end("ok", reason=None if seen.finish_reason else "no finish_reason", http_status=200)
        await send_json(send, 200, body, self.headers())

    async def _relay_stream(self, answer: Answer, send: Send) -> None:
        await start_events(send, self.headers())
        self.streaming = True
        try:
            for event in answer.head[:-1]:
                await send_events(send, event)
            await self._send_event(answer.head[-1], answer.record.seen, send)
            await self._relay_rest(answer, send)
        except UpstreamError as fault:
            answer.record.fail(fault)
            self.end("truncated", reason=f"{fault.fault}: {fault.message}", http_status=200)
            await send_events(send, error_event(from_upstream(fault)), more=False)
            return
        answer.record.finish()
        self.end("ok", reason=None if answer.record.seen.finish_reason else "no finish_reason", http_status=200)
        await send_events(send, DONE_EVENT, more=False)

    async def _relay_rest(self, answer: Answer, send: Send) -> None:
        """The events after the first content, each within the gap limit, all within the deadline."""
        loop = asyncio.get_running_loop()
        gap = self.decision.generation.limits.gap
        source = answer.source
        assert source is not None
        seen = answer.record.seen
        try:
            async with asyncio.timeout_at(min(self.deadline, loop.time() + gap)) as limit:
                async for event in source:
                    await self._send_event(event, seen, send)
                    limit.reschedule(min(self.deadline, loop.time() + gap))
        except TimeoutError as error:
            which = "total" if loop.time() >= self.deadline else "gap"
            raise UpstreamError("timeout", f"the {which} limit passed in the middle of the answer") from error
        if seen.finish_reason is None and not answer.done:
            raise UpstreamError("truncated", "the stream ended without finish_reason or [DONE]")

    async def _send_event(self, event: bytes, seen: Seen, send: Send) -> None:
        if seen.unclean and (data := event_data(event)) is not None:
            event = b"data: " + clean_json(data).encode() + b"\n\n"
        if seen.usage_only:
            # What is read last is what is sent now: usage was asked of the worker, perhaps not by the client.
            if not self.request.wants_usage:
                return
            if (orchestration := self._orchestration()) is not None:
                event = b"data: " + _with_orchestration(event[5:].strip(), orchestration) + b"\n\n"
        await send_events(send, event)

    def _orchestration(self) -> tuple[int, int] | None:
        """Tokens (in, out) that routing took, None where it took none."""
        decided = self.decision.decided
        if decided is None:
            return None
        usages = [decided.scored.usage, *(failure.usage for failure in decided.failures)]
        tokens = sum(u.input_tokens or 0 for u in usages), sum(u.output_tokens or 0 for u in usages)
        return tokens if any(tokens) else None

    def _call_row(self, record: CallRecord, stored: bool) -> dict[str, Any]:
        record.settle_usage(self.request.size)
        decision = self.decision
        row = record.row(self.caller.project_id, decision.id, decision.request_id, store_text=stored)
        redactor = self.state.redactor
        row["completion"] = redactor.text(row["completion"])
        row["reasoning"] = redactor.text(row["reasoning"])
        row["tool_calls"] = redactor.value(row["tool_calls"])
        row["error"] = redactor.text(row["error"])
        return row


def _with_orchestration(body: bytes, tokens: tuple[int, int]) -> bytes:
    """A reply whose `usage` says, apart from the visible tokens, what orchestration took."""
    fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    usage = msgspec.json.decode(fields["usage"]) if "usage" in fields else None
    if not isinstance(usage, dict):
        return body
    for group, name, count in (
        ("prompt_tokens_details", "orchestration_input_tokens", tokens[0]),
        ("completion_tokens_details", "orchestration_output_tokens", tokens[1]),
    ):
        details = usage.get(group)
        usage[group] = {**(details if isinstance(details, dict) else {}), name: count}
    fields["usage"] = msgspec.Raw(msgspec.json.encode(usage))
    return msgspec.json.encode(fields)
