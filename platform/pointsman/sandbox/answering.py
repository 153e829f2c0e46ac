"""Sends a completion to the client, as JSON or as a stream, with the fault that is in force."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec

from pointsman.sandbox.completions import Completion
from pointsman.sandbox.faults import Fault
from pointsman.sandbox.http import (
    EventStream,
    Receive,
    Scope,
    Send,
    break_connection,
    error_body,
    send_bytes,
    send_json,
    until_disconnected,
)

STALL_SECONDS = 3_600.0
SLOW_SECONDS = 1.0
_STATUS = {"400": 400, "401": 401, "429": 429, "500": 500, "502": 502, "503": 503, "context": 400}


@dataclass(frozen=True)
class Pace:
    """Seconds before the first token, and for the rest of the answer."""

    first: float
    rest: float


@dataclass(frozen=True)
class Exchange:
    """One request's connection: the three of ASGI."""

    scope: Scope
    receive: Receive
    send: Send


async def fail_early(exchange: Exchange, fault: Fault, pace: Pace) -> bool:
    """Plays a fault that comes before any content; False where the answer goes on."""
    kind = fault.fault
    if kind == "stall":
        await asyncio.sleep(STALL_SECONDS if fault.seconds is None else fault.seconds)
        return False
    if kind == "slow":
        await asyncio.sleep(SLOW_SECONDS if fault.seconds is None else fault.seconds)
        return False
    if kind == "reset":
        await break_connection(exchange.scope, exchange.receive, exchange.send)
        return True
    if kind in _STATUS:
        await asyncio.sleep(pace.first)
        headers = {"retry-after": fault.retry_after} if fault.retry_after is not None else {}
        if kind == "429" and fault.retry_after is None:
            headers = {"retry-after": "1"}
        await send_json(exchange.send, _STATUS[kind], _refusal(kind), headers)
        return True
    return False


def _refusal(kind: str) -> dict[str, object]:
    if kind == "context":
        message = "This model's maximum context length is 1 tokens (a fault on demand)."
        return error_body(message, "invalid_request_error", "context_length_exceeded", "messages")
    if kind == "429":
        return error_body("Rate limit reached (a fault on demand).", "rate_limit_error", "rate_limit_exceeded")
    if kind == "401":
        return error_body("Incorrect API key (a fault on demand).", "authentication_error", "invalid_api_key")
    if kind == "400":
        return error_body("The request was refused (a fault on demand).", "invalid_request_error")
    return error_body(f"The server had an error: {kind} (a fault on demand).", "server_error")


async def send_whole(exchange: Exchange, completion: Completion, pace: Pace, fault: Fault | None) -> None:
    """The answer as one JSON body."""
    await asyncio.sleep(pace.first + pace.rest)
    kind = fault.fault if fault else None
    body = completion.body()
    if kind in ("error_200", "error_midstream"):
        body = error_body("The model is overloaded (a fault on demand).", "overloaded_error")
    elif kind == "no_usage":
        del body["usage"]
    elif kind == "empty":
        body["choices"] = []
    raw = msgspec.json.encode(body)
    if kind == "malformed":
        raw = raw[: len(raw) // 2] + b'\x00"}}{ oops'
    if kind == "cut":
        await _send_short(exchange, raw)
        return
    await send_bytes(exchange.send, 200, raw)


async def send_stream(
    exchange: Exchange, completion: Completion, pace: Pace, fault: Fault | None, *, with_usage: bool
) -> None:
    """The answer as server-sent events."""
    stream = EventStream(exchange.send)
    kind = fault.fault if fault else None
    chunks = list(completion.chunks())
    if kind == "empty":
        chunks = [chunk for chunk in chunks if not chunk["choices"][0]["delta"]]
    await asyncio.sleep(pace.first)
    if kind == "error_200":
        await stream.event(error_body("The model is overloaded (a fault on demand).", "overloaded_error"))
        await stream.end()
        return
    broken_at = _first_content(chunks) + 1 if kind in ("cut", "malformed", "error_midstream") else len(chunks)
    gap = pace.rest / max(1, len(chunks))
    usage_key = {"usage": None} if with_usage and kind != "no_usage" else {}
    for chunk in chunks[:broken_at]:
        await stream.event(chunk | usage_key)
        await asyncio.sleep(gap)
    if broken_at < len(chunks):
        await _break_stream(exchange, stream, str(kind))
        return
    if with_usage and kind != "no_usage":
        await stream.event(completion.usage_chunk())
    await stream.done()


def _first_content(chunks: list[dict[str, object]]) -> int:
    """The position of the first chunk after the role."""
    return min(1, len(chunks) - 1)


async def _break_stream(exchange: Exchange, stream: EventStream, kind: str) -> None:
    if kind == "malformed":
        await stream.raw(b'data: {"id": "chatcmpl-broken", "choices": [{"delta": {"conte\n\n')
        await stream.end()
    elif kind == "error_midstream":
        await stream.event(error_body("The server had an error (a fault on demand).", "server_error"))
        await stream.end()
    else:
        await _hang_up(exchange)


async def _send_short(exchange: Exchange, raw: bytes) -> None:
    """Half of a body, then the end of the connection."""
    length = (b"content-length", str(len(raw)).encode())
    start = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json"), length]}
    await exchange.send(start)
    await exchange.send({"type": "http.response.body", "body": raw[: len(raw) // 2], "more_body": True})
    await _hang_up(exchange)


async def _hang_up(exchange: Exchange) -> None:
    """Closes the connection in the middle of a body, after what was sent has gone out."""
    close: Callable[[], None] | None = exchange.scope.get("extensions", {}).get("pointsman.close")
    if close is None:
        return  # the application returns with its body unfinished, which closes it under any server
    close()
    gone: Awaitable[None] = until_disconnected(exchange.receive)
    await asyncio.wait_for(gone, timeout=5)
