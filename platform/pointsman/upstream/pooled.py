"""The transport that serves: pooled HTTP/1.1 connections on the event loop, without a session's machinery.

It posts, and nothing else: no redirects, no cookies, no proxies, nothing of the environment. TLS is the standard
library's, with its certificates and names checked. Times are limited by the caller, except connecting.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

import aiohappyeyeballs

from pointsman.errors import UpstreamError
from pointsman.upstream.faults import from_status
from pointsman.upstream.retry_after import parse_retry_after
from pointsman.upstream.wire import Connection, WireReply

MAX_ERROR_BYTES = 16_384
ERROR_SECONDS = 2.0
IDLE_SECONDS = 30.0
"""A connection that nobody used for so long is closed: before the worker does, between two requests of ours."""
KNOWN_TARGETS = 4_096
EYEBALLS_SECONDS = 0.25  # RFC 8305 §5: the next address is tried when one is silent for so long


class Origin:
    """One address that connections go to; `idle` has those that are free, the last used last."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext | None) -> None:
        self.host = host
        self.port = port
        self.context = context
        self.idle: deque[Connection] = deque()


class PooledTransport:
    """One per event loop. At most `pool` connections are open; who comes then waits for one.

    `context` is in place of the standard library's default: whose certificates are believed. `idle` is in seconds.
    """

    def __init__(self, *, pool: int = 1_000, context: ssl.SSLContext | None = None, idle: float = IDLE_SECONDS) -> None:
        self._loop = asyncio.get_running_loop()
        self._most = pool
        self._idle_seconds = idle
        self._open = 0  # connections, and those that are being made
        self._origins: dict[tuple[str, str, int], Origin] = {}
        self._targets: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[Origin, bytes]] = {}
        self._connections: set[Connection] = set()
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._sweep: asyncio.TimerHandle | None = None
        self._context = context

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, connect: float) -> WireReply:
        """Raises `UpstreamError` for connection faults and for any status but 200."""
        target = self._targets.get((url, tuple(headers.items())))
        origin, head = target if target is not None else self._target(url, headers)
        connection = self._idle(origin)
        if connection is None:
            connection = await self._connect(origin, connect)
        reply = connection.send(b"%b%d\r\n\r\n" % (head, len(body)), body)
        status = 0
        try:
            status = await reply.begun()
            if status == 200:
                return reply
            raise await _refused(reply)
        finally:
            if status != 200:
                reply.close()

    async def close(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in list(self._connections):
            connection.drop()
        await asyncio.sleep(0)  # the loop closes them

    def _target(self, url: str, headers: Mapping[str, str]) -> tuple[Origin, bytes]:
        """Where a URL leads, and the head of a request there up to the value of its last header, the length."""
        try:
            parts = urlsplit(url)
            host = (parts.hostname or "").encode("idna").decode()
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except (ValueError, UnicodeError) as error:
            raise UpstreamError("connect", f"no connection: {type(error).__name__}") from error
        path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
        query = f"?{quote(parts.query, safe='/?%:@!$&()*+,;=~-._')}" if parts.query else ""
        shown = f"[{host}]" if ":" in host else host
        given = f":{parts.port}" if parts.port else ""
        lines = [f"POST {path}{query} HTTP/1.1", f"host: {shown}{given}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        text = "\r\n".join((*lines, "content-length: "))
        if text.count("\n") != len(lines) or text.count("\r") != len(lines) or "\0" in text:
            raise UpstreamError("connect", "no connection: a header holds a line end")
        origin = self._origins.setdefault((parts.scheme, host, port), self._origin(parts.scheme, host, port))
        if len(self._targets) >= KNOWN_TARGETS:
            self._targets.clear()
        found = self._targets[url, tuple(headers.items())] = origin, text.encode("utf-8")
        return found

    def _origin(self, scheme: str, host: str, port: int) -> Origin:
        if scheme != "https":
            return Origin(host, port, None)
        if self._context is None:
            self._context = ssl.create_default_context()
            self._context.set_alpn_protocols(["http/1.1"])  # no worker may choose HTTP/2
        return Origin(host, port, self._context)

    def _idle(self, origin: Origin) -> Connection | None:
        while origin.idle:
            connection = origin.idle.pop()
            if not connection.closed and not connection.transport.is_closing():
                return connection
        return None

    async def _connect(self, origin: Origin, seconds: float) -> Connection:
        try:
            async with asyncio.timeout(seconds):
                return await self._opened(origin)
        except TimeoutError as error:
            raise UpstreamError("timeout", "the connection could not be made in time") from error
        except (OSError, ValueError) as error:  # names that cannot be found and certificates are OSErrors too
            raise UpstreamError("connect", f"no connection: {type(error).__name__}") from error

    async def _opened(self, origin: Origin) -> Connection:
        while self._open >= self._most and not self._dropped_idle():
            await self._turn()
            if (free := self._idle(origin)) is not None:
                return free
        self._open += 1
        connection: Connection | None = None
        try:
            connection = await self._made(origin)
            self._connections.add(connection)
        finally:
            if connection is None:
                self._open -= 1
                self._wake_one()
        return connection

    async def _made(self, origin: Origin) -> Connection:
        found = await self._loop.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
        sock = await aiohappyeyeballs.start_connection(found, happy_eyeballs_delay=EYEBALLS_SECONDS, loop=self._loop)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        _, connection = await self._loop.create_connection(
            lambda: Connection(lambda one: self._released(origin, one), self._gone),
            sock=sock,
            ssl=origin.context,
            server_hostname=origin.host if origin.context is not None else None,
        )
        if connection.closed:
            raise ConnectionResetError
        return connection

    async def _turn(self) -> None:
        """Returns when a connection may have become free, or one fewer is open."""
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled():  # its turn goes to the next
                self._wake_one()
            raise

    def _dropped_idle(self) -> bool:
        """Whether room was made by closing a connection that is free, of whatever address."""
        for origin in self._origins.values():
            while origin.idle:
                oldest = origin.idle.popleft()
                if not oldest.closed:
                    oldest.drop()
                    return True
        return False

    def _released(self, origin: Origin, connection: Connection) -> None:
        connection.idle_since = self._loop.time()
        origin.idle.append(connection)
        if self._waiters:
            self._wake_one()
        if self._sweep is None:
            self._sweep = self._loop.call_later(self._idle_seconds / 2, self._close_old)

    def _gone(self, connection: Connection) -> None:
        if connection in self._connections:
            self._connections.discard(connection)
            self._open -= 1
            self._wake_one()

    def _wake_one(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _close_old(self) -> None:
        oldest = self._loop.time() - self._idle_seconds
        self._sweep = None
        for origin in self._origins.values():
            while origin.idle and (origin.idle[0].closed or origin.idle[0].idle_since < oldest):
                origin.idle.popleft().drop()
        if any(origin.idle for origin in self._origins.values()):
            self._sweep = self._loop.call_later(self._idle_seconds / 2, self._close_old)


async def _refused(reply: WireReply) -> UpstreamError:
    """The error that a status other than 200 stands for, with its body, bounded."""
    body = b""
    try:
        async with asyncio.timeout(ERROR_SECONDS):
            async for data in reply.chunks():
                body += data
                if len(body) >= MAX_ERROR_BYTES:
                    break
    except (UpstreamError, TimeoutError):
        pass  # the status says enough
    reply.close()
    wait = parse_retry_after(reply.header(b"retry-after"))
    return from_status(reply.status, body.decode("utf-8", "replace"), wait)
