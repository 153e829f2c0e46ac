"""The few pieces of HTTP that the sandbox's bare ASGI server needs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

import msgspec

from pointsman.errors import RequestError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MAX_BODY = 20_000_000
_JSON = (b"content-type", b"application/json")
_EVENTS = ((b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache"))


async def read_body(receive: Receive) -> bytes:
    """The whole request body; raises `RequestError` where it is too large."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b"".join(parts)
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY:
            raise RequestError(f"body: expected at most {MAX_BODY} bytes", status=413)
        if not message.get("more_body", False):
            return b"".join(parts)


async def read_object(receive: Receive) -> dict[str, Any]:
    """The body as a JSON object; raises `RequestError`."""
    raw = await read_body(receive)
    try:
        # The standard library's reader takes lone surrogates and NaN, as many providers do.
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"body: expected JSON: {error}") from None
    if not isinstance(body, dict):
        raise RequestError("body: expected a JSON object")
    return body


async def until_disconnected(receive: Receive) -> None:
    """Returns when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def header(scope: Scope, name: str) -> str | None:
    wanted = name.encode("latin-1")
    for key, value in scope["headers"]:
        if key == wanted:
            return bytes(value).decode("latin-1")
    return None


async def send_bytes(send: Send, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
    extra = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in (headers or {}).items()]
    length = (b"content-length", str(len(body)).encode("latin-1"))
    await send({"type": "http.response.start", "status": status, "headers": [_JSON, length, *extra]})
    await send({"type": "http.response.body", "body": body})


async def send_json(send: Send, status: int, value: Any, headers: Mapping[str, str] | None = None) -> None:
    await send_bytes(send, status, msgspec.json.encode(value), headers)


def error_body(message: str, type: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    """OpenAI's error object."""
    return {"error": {"message": message, "type": type, "param": param, "code": code}}


class EventStream:
    """Server-sent events: starts its response with the first event."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = False

    async def start(self) -> None:
        if not self.started:
            self.started = True
            await self._send({"type": "http.response.start", "status": 200, "headers": list(_EVENTS)})

    async def raw(self, data: bytes) -> None:
        await self.start()
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def event(self, value: Any) -> None:
        await self.raw(b"data: " + msgspec.json.encode(value) + b"\n\n")

    async def done(self) -> None:
        await self.raw(b"data: [DONE]\n\n")
        await self.end()

    async def end(self) -> None:
        """Ends the body as HTTP wants it, whatever the stream lacked."""
        await self.start()
        await self._send({"type": "http.response.body", "body": b""})


async def break_connection(scope: Scope, receive: Receive, send: Send) -> None:
    """Resets the connection without an answer where the server lets us, else breaks an answer off.

    `serve` runs uvicorn with a protocol that offers `pointsman.abort`. Under any other server the body
    stops short of its content-length, which closes the connection.
    """
    abort = scope.get("extensions", {}).get("pointsman.abort")
    if abort is not None:
        abort()
        await asyncio.wait_for(until_disconnected(receive), timeout=5)
        return
    length = (b"content-length", b"1000")
    await send({"type": "http.response.start", "status": 200, "headers": [_JSON, length]})
    await send({"type": "http.response.body", "body": b'{"id":', "more_body": True})
