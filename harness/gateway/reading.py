"""Reading a request's body, bounded, and noticing that a client has left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from harness.gateway.access import Headers, header
from harness.gateway.cycle import cycle_of
from harness.gateway.responses import Receive
from pointsman.errors import RequestError

BODY_SECONDS = 15.0


async def read_body(receive: Receive, headers: Headers, limit: int, *, seconds: float = BODY_SECONDS) -> bytes | None:
    """The whole body; None where the client left first. Raises 413 or 408."""
    length = header(headers, b"content-length")
    if length is not None and length.isdigit() and int(length) > limit:
        raise _too_large(limit)
    cycle = cycle_of(receive)
    if cycle is not None and (whole := cycle.whole_body()) is not None:
        if len(whole) > limit:
            raise _too_large(limit)
        return whole
    try:
        async with asyncio.timeout(seconds):
            return await _read_parts(receive, limit)
    except TimeoutError:
        raise RequestError("the body did not arrive in time", status=408, code="body_timeout") from None


async def _read_parts(receive: Receive, limit: int) -> bytes | None:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        if not message.get("more_body"):
            return b"".join((*parts, part)) if parts else part
        parts.append(part)


def when_left(receive: Receive, call: Callable[[], None]) -> Callable[[], object]:
    """Calls when the client has left. Returns what ends the watching."""
    cycle = cycle_of(receive)
    if cycle is not None:
        cycle.when_left(call)
        return lambda: cycle.when_left(None)
    gone = asyncio.ensure_future(until_disconnect(receive))
    gone.add_done_callback(lambda done: None if done.cancelled() else call())
    return gone.cancel


async def until_disconnect(receive: Receive) -> None:
    """Returns when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _too_large(limit: int) -> RequestError:
    return RequestError(f"the body is larger than {limit:,} bytes", status=413, code="body_too_large")
