"""Relaying a stream: its events as they come, each within the gap limit, all within the deadline.

After content nothing is retried: a fault becomes an error event, without `[DONE]`, and the outcome
says `truncated`. A surface with words of its own tells the stream through the exchange's `teller`.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from harness.gateway.keep_alive import KeepAlive
from harness.gateway.responses import Send, from_upstream, send_events
from harness.gateway.usage import usage_event, with_null_usage, with_orchestration
from pointsman.errors import UpstreamError
from pointsman.upstream.attempts import is_due
from pointsman.upstream.reading import Answer, Event
from pointsman.upstream.record import CallRecord
from pointsman.upstream.sse import event_data

if TYPE_CHECKING:
    from harness.gateway.exchange import Exchange
    from harness.gateway.surfaces.base import Teller

TOTAL = "the total limit passed in the middle of the answer"
DONE_EVENT = b"data: [DONE]\n\n"
SLACK = 0.05
"""The share of the gap limit by which it may pass early: its timer is not set anew for every event."""


class _SlowClient(Exception):
    """The client took nothing for the whole gap limit."""


async def relay_stream(exchange: Exchange, answer: Answer, send: Send) -> None:
    """Sends head and rest of a stream, and ends the exchange. Returns when the stream has ended either way."""
    record = answer.record
    try:
        await _relay(exchange, answer, send)
    except UpstreamError as fault:
        record.fail(fault)
        if fault.message != TOTAL:  # it was answering: the time was short
            exchange.state.attempts.note_failure(record.worker.name, fault)
        exchange.end("truncated", reason=f"{fault.fault}: {fault.message}", http_status=200)
        await send_events(send, exchange.error_event(from_upstream(fault)), more=False)
    except _SlowClient:
        exchange.end("client_cancelled", reason="the client took no byte within the gap limit", http_status=200)
    else:
        record.finish()
        exchange.state.breaker.succeeded(record.worker.name)
        closing = _closing(exchange, record)
        exchange.end("ok", reason=record.ending, http_status=200)
        await send_events(send, closing, more=False)


def _closing(exchange: Exchange, record: CallRecord) -> bytes:
    """What ends a whole stream: its usage, where the client asked for it and the worker gave none, and the end."""
    event = b""
    if exchange.request.wants_usage and (usage := record.settle_usage(exchange.request.prompt_tokens)):
        event = b"" if record.seen.usage else _asked(exchange, Event(usage_event(record, usage), True, True))
    teller = exchange.teller
    if teller is None:
        return event + DONE_EVENT
    return (_told(teller, event) if event else b"") + teller.finish()


async def _relay(exchange: Exchange, answer: Answer, send: Send) -> None:
    loop = asyncio.get_running_loop()
    gap, deadline = exchange.decision.generation.limits.gap, exchange.deadline
    source = answer.source
    assert source is not None
    silence = exchange.decision.generation.config.gateway.keep_alive
    alive = KeepAlive(answer, send, exchange.surface.keep_alive, silence)
    alive.sending = True
    try:
        async with asyncio.timeout_at(min(deadline, loop.time() + gap)) as limit, aclosing(source):
            for event in answer.head:
                await _send(exchange, event, send)
            alive.sending = False
            alive.start()
            slack, due = gap * SLACK, loop.time()
            limit.reschedule(min(deadline, due + gap))
            async for event in source:
                alive.sending = True
                await _send(exchange, event, send)
                alive.sending = False
                alive.last = now = loop.time()
                if now > due + slack:
                    due = now
                    limit.reschedule(min(deadline, due + gap))
    except TimeoutError as error:
        if is_due(deadline):
            raise UpstreamError("timeout", TOTAL) from error
        if alive.sending:
            raise _SlowClient from error
        raise UpstreamError("timeout", "the gap limit passed in the middle of the answer") from error
    finally:
        alive.stop()
    if not (answer.done or answer.record.seen.finished):
        raise UpstreamError("truncated", "the stream ended without finish_reason or [DONE]")


async def _send(exchange: Exchange, event: Event, send: Send) -> None:
    """Usage was asked of the worker, perhaps not by the client: then a chunk with nothing else is not for it."""
    if exchange.teller is not None:
        if told := _told(exchange.teller, _asked(exchange, event) if event.usage else event.data):
            await send_events(send, told)
    elif exchange.request.wants_usage:
        await send_events(send, _asked(exchange, event))
    elif not event.alone:
        await send_events(send, event.data)


def _told(teller: Teller, event: bytes) -> bytes:
    """An event in the surface's own words; a comment passes."""
    data = event_data(event)
    if data:
        return teller.feed(data)
    return event if event.startswith(b":") else b""


def _asked(exchange: Exchange, event: Event) -> bytes:
    """An event for a client that asked for usage."""
    if not event.usage:
        return with_null_usage(event.data)
    orchestration = exchange.orchestration()
    data = event_data(event.data) if orchestration is not None else None
    if orchestration is None or data is None:
        return event.data
    return b"data: " + with_orchestration(data, orchestration) + b"\n\n"
