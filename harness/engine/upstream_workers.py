"""Workers over HTTP, through the one retry loop: fallbacks until the first content, every attempt a row."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import msgspec

from harness.engine.events import Delta
from harness.engine.request import Message, tokens_of
from harness.engine.workers import CallResult, CallRow, Sink
from pointsman.errors import UpstreamError
from pointsman.pool import Worker
from pointsman.upstream.attempts import Attempts, Limits, is_due
from pointsman.upstream.body import Fields
from pointsman.upstream.outgoing import Outgoing, chat_call
from pointsman.upstream.price import add
from pointsman.upstream.reading import Answer, Event
from pointsman.upstream.record import CallRecord
from pointsman.upstream.sse import event_data
from pointsman.words import CallPurpose

_BY_THE_ENGINE = ("project_id", "decision_id", "request_id")


class _Part(msgspec.Struct):
    content: Any = None


class _Choice(msgspec.Struct):
    index: Any = 0
    delta: _Part | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None


_decode = msgspec.json.Decoder(_Chunk).decode


class UpstreamWorkers:
    """`limits` are those of one call: connecting, first token, gap, attempts."""

    def __init__(self, attempts: Attempts, limits: Limits) -> None:
        self._attempts = attempts
        self._limits = limits

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
        body = {**fields, "messages": messages, **({"tools": list(tools)} if tools else {})}
        raw: Fields = {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in body.items()}
        records: list[CallRecord] = []
        fault: UpstreamError | None = None
        answer: Answer | None = None
        try:
            answer = await self._attempts.answer(
                [worker, *fallbacks],
                lambda candidate: _outgoing(raw, candidate, stream is not None),
                self._limits,
                records,
                stream=stream is not None,
                deadline=deadline,
            )
            if stream is not None and answer.body is None:
                await self._read(answer, stream, deadline)
        except UpstreamError as error:
            fault = error
        finally:
            if answer is not None:
                answer.close()
            rows += _rows(records, tokens_of(messages, body))
        return _result(worker, records, rows, fault)

    async def _read(self, answer: Answer, stream: Sink, deadline: float) -> None:
        """The rest of a stream, told as it comes. Raises `UpstreamError` where it breaks off."""
        record = answer.record
        try:
            await self._tell(answer, stream, deadline)
            if not (answer.done or record.seen.finished):
                raise UpstreamError("truncated", "the stream ended without finish_reason or [DONE]")
        except UpstreamError as fault:
            record.fail(fault)
            if not is_due(deadline):
                self._attempts.note_failure(record.worker.name, fault)
            raise
        except asyncio.CancelledError:
            record.cancelled()
            raise
        record.finish()
        self._attempts.breaker.succeeded(record.worker.name)

    async def _tell(self, answer: Answer, stream: Sink, deadline: float) -> None:
        loop, gap = asyncio.get_running_loop(), self._limits.gap
        source = answer.source
        assert source is not None, "an answer without a body is a stream"
        for event in answer.head:
            _pass(event, stream)
        try:
            async with asyncio.timeout_at(min(deadline, loop.time() + gap)) as limit, aclosing(source):
                async for event in source:
                    _pass(event, stream)
                    limit.reschedule(min(deadline, loop.time() + gap))
        except TimeoutError as error:
            which = "total" if is_due(deadline) else "gap"
            raise UpstreamError("timeout", f"the {which} limit passed in the middle of the answer") from error


def _outgoing(fields: Fields, worker: Worker, stream: bool) -> Outgoing:
    return chat_call({**fields, "stream": msgspec.Raw(b"true")} if stream else fields, worker, stream=stream)


def _pass(event: Event, stream: Callable[[Delta], None]) -> None:
    """Tells what an event says of the first choice's text; tool calls are told whole, when the reply is over."""
    data = event_data(event.data)
    if not data:
        return
    try:
        chunk = _decode(data)
    except msgspec.MsgspecError:
        return
    for choice in chunk.choices or ():
        if choice.index in (0, None) and choice.delta is not None and isinstance(choice.delta.content, str):
            if choice.delta.content:
                stream(Delta(choice.delta.content, data))
            return


def _rows(records: Sequence[CallRecord], prompt_tokens: int) -> list[CallRow]:
    rows = []
    for record in records:
        if record.latency_ms is None:
            record.cancelled()
        record.settle_usage(prompt_tokens)
        row = record.row("", "", "", store_text=True)
        rows.append({name: value for name, value in row.items() if name not in _BY_THE_ENGINE})
    return rows


def _result(
    worker: Worker, records: Sequence[CallRecord], rows: Sequence[CallRow], fault: UpstreamError | None
) -> CallResult:
    """The last attempt's reply; the cost is of all of them."""
    if not records:
        return CallResult(worker.name, fault=fault)
    total = records[0].cost
    for record in records[1:]:
        total = add(total, record.cost)
    last = records[-1]
    return CallResult(
        worker=last.worker.name,
        text=last.seen.completion,
        tool_calls=last.seen.tool_calls or [],
        finish_reason=last.seen.finish_reason,
        usage=last.usage,
        cost=total,
        latency_ms=last.latency_ms or 0.0,
        first_token_ms=last.first_token_ms,
        fault=fault,
    )
