"""One HTTP/1.1 connection to a worker, and the reply that comes over it.

The parser is llhttp's (httptools): it cuts heads, chunks and trailers wherever the network cut them, and refuses
what could be read in two ways. A reply without a length ends with its connection. A connection answers one request
at a time and is used again only where nothing but that reply came. Nothing is ever sent twice from here: whether a
call that failed is tried again, the loop in `attempts` says.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

import httptools

from pointsman.errors import UpstreamError
from pointsman.upstream.inflating import Inflater, inflater

MAX_HEAD_BYTES = 128 * 1024
MAX_REPLY_BYTES = 64 * 1024 * 1024
HIGH_WATER = 64 * 1024
"""Bytes of a reply that may wait here for who reads it; then the worker waits."""


class Connection(asyncio.Protocol):
    """`release` is called once when a reply has come whole, `gone` once when the connection is lost."""

    def __init__(self, release: Callable[[Connection], None], gone: Callable[[Connection], None]) -> None:
        self.transport: asyncio.Transport
        self.idle_since = 0.0
        self.closed = False
        self._release = release
        self._gone = gone
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._reply: WireReply | None = None
        self._interim = False  # of a 1xx, which comes before the reply
        self._head_bytes = 0
        self._in_head = True
        self._bounded = False  # the reply says how long it is
        self._tainted = False  # something came that nobody asked for

    def send(self, head: bytes, body: bytes) -> WireReply:
        """Writes a request; its reply fills as it comes."""
        self._reply = reply = WireReply(self, self._loop)
        self._in_head, self._head_bytes, self._bounded = True, 0, False
        if len(body) < HIGH_WATER:
            self.transport.write(head + body)
        else:
            self.transport.write(head)
            self.transport.write(body)
        return reply

    def drop(self) -> None:
        """Ends it at once, whatever is under way."""
        self.closed = True
        self._reply = None
        self.transport.abort()

    def resume(self) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self._reply is None:
            self._refuse("bytes that nobody asked for")
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if self._reply is not None:
                self._refuse(type(error).__name__)
            else:  # the reply was whole, what follows it is not
                self._tainted = True
        if self._in_head and self._reply is not None:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._refuse("the head of the reply is too large")
        if self._tainted and not self.closed:
            self.closed = True
            self.transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        self.closed = True
        reply, self._reply = self._reply, None
        if reply is not None:
            if not self._in_head and not self._bounded and error is None:
                reply.end()
            else:
                name = type(error).__name__ if error is not None else "closed by the worker"
                when = "no connection" if self._in_head else "the connection was lost"
                reply.fail(UpstreamError("connect", f"{when}: {name}"))
        self._gone(self)

    # httptools

    def on_message_begin(self) -> None:
        if self._reply is None:
            self._tainted = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._reply is None or not self._in_head:
            return  # a trailer
        name = name.lower()
        if name in (b"content-length", b"transfer-encoding"):
            self._bounded = True
        self._reply.headers.append((name, value))

    def on_headers_complete(self) -> None:
        reply = self._reply
        if reply is None:
            return
        status: int = self._parser.get_status_code()
        if status < 200 and status != 101:
            self._interim, self._bounded = True, False
            reply.headers.clear()
            return
        self._in_head = False
        reply.begin(status)

    def on_body(self, data: bytes) -> None:
        reply = self._reply
        if reply is not None and reply.add(data) and not self.transport.is_closing():
            self.transport.pause_reading()

    def on_message_complete(self) -> None:
        if self._interim:
            self._interim = False
            return
        reply, self._reply = self._reply, None
        if reply is None:
            return
        if not self._parser.should_keep_alive() or self.transport.get_write_buffer_size():
            self._tainted = True
        reply.end()
        if reply.paused:
            self.resume()
        if not self._tainted:
            self._release(self)

    def _refuse(self, why: str) -> None:
        reply = self._reply
        self.drop()
        if reply is not None:
            reply.fail(UpstreamError("connect", f"no reply that can be read: {why}"))


class WireReply:
    """A reply as it comes. One task reads it."""

    def __init__(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.paused = False
        self._connection = connection
        self._loop = loop
        self._parts: list[bytes] = []
        self._size = 0
        self._room = HIGH_WATER
        self._ended = False
        self._fault: UpstreamError | None = None
        self._waiter: asyncio.Future[None] | None = None

    def header(self, name: bytes) -> str | None:
        return next((value.decode("latin-1") for key, value in self.headers if key == name), None)

    async def begun(self) -> int:
        """The status, once the head is here."""
        while not self.status:
            if self._fault is not None:
                raise self._fault
            await self._more()
        return self.status

    async def read(self) -> bytes:
        """The whole body. Raises `UpstreamError` where the connection is lost, or the body too large."""
        self._room = MAX_REPLY_BYTES + 1
        self._resume()
        while not self._ended and self._size <= MAX_REPLY_BYTES:
            if self._fault is not None:
                raise self._fault
            await self._more()
        body = self._taken()
        if (inflate := self._inflater()) is not None:
            body = inflate.feed(body, MAX_REPLY_BYTES + 1)
        if len(body) > MAX_REPLY_BYTES:
            self.close()
            raise UpstreamError("malformed", f"the reply is larger than {MAX_REPLY_BYTES:,} bytes")
        return body

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it arrives, cut anywhere."""
        inflate = self._inflater()
        while True:
            if self._parts:
                data = self._taken()
                self._resume()
                if inflate is None:
                    yield data
                else:
                    for part in inflate.parts(data):
                        yield part
            elif self._ended:
                return
            elif self._fault is not None:
                raise self._fault
            else:
                await self._more()

    def close(self) -> None:
        """Closes the connection unless the body came to its end: this is how a call is cancelled."""
        if not self._ended and self._fault is None:
            self._fault = UpstreamError("connect", "the call was ended here")
            self._connection.drop()

    # called by the connection

    def begin(self, status: int) -> None:
        self.status = status
        self._wake()

    def add(self, data: bytes) -> bool:
        """Takes a part of the body; True where the worker must wait before it sends more."""
        self._parts.append(data)
        self._size += len(data)
        self._wake()
        if self._size < self._room or self.paused:
            return False
        self.paused = True
        return True

    def end(self) -> None:
        self._ended = True
        self._wake()

    def fail(self, fault: UpstreamError) -> None:
        self._fault = fault
        self._wake()

    def _taken(self) -> bytes:
        parts = self._parts
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        self._size = 0
        return data

    def _inflater(self) -> Inflater | None:
        encoding = self.header(b"content-encoding")
        return inflater(encoding) if encoding is not None else None

    def _resume(self) -> None:
        if self.paused and self._size < self._room:
            self.paused = False
            if not self._ended and self._fault is None:
                self._connection.resume()

    async def _more(self) -> None:
        self._waiter = waiter = self._loop.create_future()
        try:
            await waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
