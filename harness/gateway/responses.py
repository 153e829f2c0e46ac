"""Answers as ASGI messages: JSON, OpenAI-shaped errors, server-sent events."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from pointsman.errors import RequestError, StoreError, UpstreamError

Message = dict[str, Any]
Send = Callable[[Message], Awaitable[None]]
Receive = Callable[[], Awaitable[Message]]
Headers = list[tuple[bytes, bytes]]

JSON = (b"content-type", b"application/json")
EVENTS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]


async def send_json(send: Send, status: int, body: bytes, headers: Headers) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [JSON, length, *headers]})
    await send({"type": "http.response.body", "body": body})


async def start_events(send: Send, headers: Headers) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [*EVENTS, *headers]})


async def send_events(send: Send, data: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": more})


async def send_error(send: Send, error: RequestError, headers: Headers, body: bytes | None = None) -> None:
    """`body` is the error in the words of the client's API, where they are not OpenAI's."""
    extra = list(headers)
    if error.retry_after is not None:
        extra.append((b"retry-after", retry_after(error.retry_after).encode()))
    await send_json(send, error.status, error_body(error) if body is None else body, extra)


def unlogged(error: StoreError) -> RequestError:
    """Accepted means logged: what cannot be logged is refused."""
    return RequestError(
        f"this cannot be logged now, so it is not served: {error}",
        status=503,
        type="server_error",
        code="log_unavailable",
        retry_after=2,
    )


def internal_fault() -> RequestError:
    return RequestError("a fault in the gateway; it is in its log", status=500, type="server_error", code="internal")


def retry_after(seconds: float) -> str:
    """The header's value: whole seconds, rounded up, at least one."""
    return str(max(1, math.ceil(seconds)))


def error_body(error: RequestError) -> bytes:
    """OpenAI's error object."""
    return msgspec.json.encode(
        {"error": {"message": error.message, "type": error.type, "param": error.param, "code": error.code}}
    )


def error_event(error: RequestError) -> bytes:
    """An error in the middle of a stream; no `[DONE]` follows it."""
    return b"data: " + error_body(error) + b"\n\n"


def from_upstream(error: UpstreamError) -> RequestError:
    """What a client is told when the last worker failed: never our own credentials' trouble as its own 401."""
    detail = f" ({error.body[:500]})" if error.body and error.fault in ("bad_request", "context_exceeded") else ""
    if error.fault == "context_exceeded":
        return RequestError(
            f"the prompt does not fit the context window of any worker that may answer{detail}",
            code="context_length_exceeded",
            param="messages",
        )
    if error.fault == "bad_request":
        status = error.status or 400
        return RequestError(f"the worker refused the request{detail}", status=status, code="upstream_refused")
    if error.fault == "rate_limited":
        return RequestError(
            "every worker that may answer is at its rate limit",
            status=429,
            type="rate_limit_error",
            code="rate_limit_exceeded",
            retry_after=error.retry_after or 1.0,
        )
    status = 504 if error.fault == "timeout" else 502
    return RequestError(
        f"the worker did not answer: {error.message}", status=status, type="upstream_error", code=error.fault
    )
