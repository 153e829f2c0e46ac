"""A light HTTP/1.1 client for load: it notes what a caller would have seen, and costs little beside what it measures.

It speaks only what the gateway answers with (a content length, or chunks), keeps its connection, and
sends once more, as every client does, when a kept connection turns out to have been closed before a
byte came back; `again` counts that.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from dataclasses import dataclass, field
from typing import Any

PATH = "/v1/chat/completions"
PLACES = ("north", "south", "east")
_SERIAL = re.compile(rb'"id": ?"chatcmpl-(\d+)"')
_DECISION = re.compile(rb"\r\nx-pointsman-decision-id: ([0-9a-f-]{36})\r\n")
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n")
_CODE = re.compile(rb'"code": ?"(\w+)"')
_RETRY = re.compile(rb"\r\nretry-after: (\d+)\r\n")


@dataclass
class Ask:
    """One request and what its client saw. Times are `time.monotonic`."""

    number: int
    streamed: bool
    began: float = 0.0
    first: float = 0.0  # the first byte of the answer
    ended: float = 0.0
    status: int | None = None
    decision: str | None = None
    serial: int | None = None
    retry_after: int | None = None
    whole: bool = False
    told: bool = False  # an error object, as the answer or in the stream
    error: str | None = None
    again: int = 0
    body: bytes = b""

    @property
    def seconds(self) -> float:
        return self.ended - self.began

    @property
    def code(self) -> str | None:
        """The code in the error object of an answer that failed."""
        found = _CODE.search(self.body)
        return found[1].decode() if found else None


def payload(
    number: int,
    *,
    stream: bool,
    play: dict[str, Any] | None = None,
    size: int = 0,
    model: str = "pointsman",
    places: int = 3,
) -> bytes:
    """The body of ask `number`; its text names the worker that the rules then choose."""
    content = f"ask {number} by the {PLACES[number % places]} line " + "x" * size
    body = {"model": model, "stream": stream, "messages": [{"role": "user", "content": content}]}
    return json.dumps(body if play is None else {**body, "play": play}).encode()


def request_bytes(body: bytes, headers: dict[str, str] | None = None, path: str = PATH) -> bytes:
    extra = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n{extra}"
    return head.encode() + b"content-length: %d\r\n\r\n" % len(body) + body


class _Reading(asyncio.Protocol):
    """The answers of one connection, one at a time."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self.open = False
        self._got = bytearray()
        self._ask: Ask | None = None
        self._done: asyncio.Future[None] | None = None
        self._head = 0
        self._needs = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport, self.open = transport, True

    def connection_lost(self, error: Exception | None) -> None:
        self.open = False
        if self._ask is not None:
            self._ask.error = type(error).__name__ if error else "closed"
            self._finish()

    def begin(self, ask: Ask, data: bytes) -> asyncio.Future[None]:
        self._got, self._ask, self._head, self._needs = bytearray(), ask, 0, 0
        self._done = asyncio.get_running_loop().create_future()
        self.transport.write(data)
        return self._done

    def leave(self) -> None:
        """Closes; an ask under way is left as it is."""
        self._ask = None
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        ask, got = self._ask, self._got
        if ask is None:
            return
        if not ask.first:
            ask.first = time.monotonic()
        got += data
        if not self._head and not self._read_head(ask):
            return
        if len(got) >= self._needs if self._needs else got.endswith(b"\r\n0\r\n\r\n"):
            self._finish()

    def _read_head(self, ask: Ask) -> bool:
        end = self._got.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = bytes(self._got[: end + 2]).lower()
        self._head = end + 4
        ask.status = int(head[9:12])
        if found := _DECISION.search(head):
            ask.decision = found[1].decode()
        if found := _LENGTH.search(head):
            self._needs = self._head + int(found[1])
        if found := _RETRY.search(head):
            ask.retry_after = int(found[1])
        return True

    def _finish(self) -> None:
        ask, done = self._ask, self._done
        assert ask is not None and done is not None
        self._ask = None
        ask.ended = time.monotonic()
        ask.body = bytes(self._got[self._head :])
        if found := _SERIAL.search(ask.body):
            ask.serial = int(found[1])
        ending = b"data: [DONE]" if ask.streamed else b'"choices"'
        ask.whole = ask.status == 200 and ask.error is None and ending in ask.body
        ask.told = b'"error"' in ask.body
        if not done.done():
            done.set_result(None)


@dataclass
class Client:
    """One caller, who keeps a connection."""

    host: str
    port: int
    timeout: float = 90.0
    _line: _Reading | None = field(default=None, repr=False)

    async def send(self, ask: Ask, body: bytes, headers: dict[str, str] | None = None) -> Ask:
        """Sends and reads to the end; what breaks off is noted, not raised. The body is kept only on failure."""
        data = request_bytes(body, headers)
        ask.began = time.monotonic()
        kept = self._line is not None and self._line.open
        await self._once(ask, data)
        if kept and ask.error is not None and not ask.first:
            ask.error, ask.again = None, 1
            await self._once(ask, data)
        if ask.whole:
            ask.body = b""
        return ask

    async def _once(self, ask: Ask, data: bytes) -> None:
        try:
            async with asyncio.timeout(self.timeout):
                if self._line is None or not self._line.open:
                    loop = asyncio.get_running_loop()
                    _, self._line = await loop.create_connection(_Reading, self.host, self.port)
                await self._line.begin(ask, data)
        except (OSError, TimeoutError) as error:
            ask.error, ask.ended = type(error).__name__, time.monotonic()
            self.close()

    def close(self) -> None:
        if self._line is not None and self._line.open:
            self._line.leave()
        self._line = None
