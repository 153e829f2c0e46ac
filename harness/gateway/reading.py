"""Reading a request's body, bounded, and noticing that a client has left."""

from __future__ import annotations

import asyncio

from harness.gateway.access import Headers, header
from harness.gateway.responses import Receive
from pointsman.errors import RequestError

BODY_SECONDS = 30.0


async def read_body(receive: Receive, headers: Headers, limit: int) -> bytes | None:
    """The whole body; None where the client left first. Raises 413 or 408."""
    length = header(headers, b"content-length")
    if length is not None and length.isdigit() and int(length) > limit:
        raise _too_large(limit)
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body"):
        body: bytes = message.get("body", b"")
        if len(body) > limit:
            raise _too_large(limit)
        return body
    return await _read_parts(receive, message, limit)


async def _read_parts(receive: Receive, message: dict[str, object], limit: int) -> bytes | None:
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                if message["type"] == "http.disconnect":
                    return None
                part = message.get("body", b"")
                assert isinstance(part, bytes)
                size += len(part)
                if size > limit:
                    raise _too_large(limit)
                parts.append(part)
                if not message.get("more_body"):
                    return b"".join(parts)
                message = await receive()
    except TimeoutError:
        raise RequestError("the body did not arrive in time", status=408, code="body_timeout") from None


async def until_disconnect(receive: Receive) -> None:
    """Returns when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _too_large(limit: int) -> RequestError:
    return RequestError(f"the body is larger than {limit:,} bytes", status=413, code="body_too_large")
