"""HTTP/1.1 as uvicorn serves it, with a limit to how long a request's head may take, and how large it may be.

uvicorn waits for ever for a head that was begun or never was, so a few slow clients could hold every
connection. A body has its own limits, where it is read. An idle connection has uvicorn's keep-alive, but one timer
that looks now and then in place of one that is set and cancelled with every request.
"""

from __future__ import annotations

import asyncio
import socket
from http import HTTPStatus
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from harness.gateway.cycle import Cycle
from harness.gateway.responses import error_body
from pointsman.errors import RequestError

MAX_HEAD_BYTES = 64 * 1024
SEND_BUFFER = 128 * 1024
"""Bytes that the kernel may hold for one client: its own choice is megabytes for each slow reader."""
UNSENT_SECONDS = 5.0
"""A closed connection whose client takes nothing for so long is given up."""


class RequestProtocol(HttpToolsProtocol):
    """One connection. A subclass may have other limits."""

    head_seconds = 15.0
    max_head_bytes = MAX_HEAD_BYTES

    _timer: asyncio.TimerHandle | None = None
    _head_due: float | None = None  # while a head is awaited that must come soon
    _idle_since = 0.0
    _waiting_bytes = 0  # of the head that has begun
    _in_body = False
    _looking = False  # at what is unsent

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if isinstance(self.cycle, Cycle):
            self.cycle.lost()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        if not self._looking:
            self._looking = True
            self.loop.call_later(UNSENT_SECONDS, self._look_at_unsent, self.transport.get_write_buffer_size())

    def _look_at_unsent(self, before: int) -> None:
        """A connection that is closed would wait for ever for a client that takes nothing of the rest."""
        unsent = self.transport.get_write_buffer_size()
        self._looking = bool(unsent)
        if self.transport.is_closing() and unsent and unsent == before:
            self.transport.abort()
        elif unsent:
            self.loop.call_later(UNSENT_SECONDS, self._look_at_unsent, unsent)

    def data_received(self, data: bytes) -> None:
        in_body = self._in_body
        super().data_received(data)
        if not self._between_requests():
            return
        if not in_body:  # the rest of a body that was refused is let in, for as long as a head may take
            self._waiting_bytes += len(data)
        if self._waiting_bytes > self.max_head_bytes:
            self._refuse(431, "the head of the request is too large", "head_too_large")
        elif self._head_due is None:
            self._await_head()

    def on_headers_complete(self) -> None:
        self._waiting_bytes = 0
        self._head_due = None
        self._in_body = True
        version: str = self.parser.get_http_version()
        scope = self.scope
        scope["method"] = self.parser.get_method().decode("ascii")
        scope["http_version"] = version
        url = httptools.parse_url(self.url)
        path = url.path.decode("ascii")
        scope["path"] = unquote(path) if "%" in path else path
        scope["raw_path"] = url.path
        scope["query_string"] = url.query or b""
        if self.parser.should_upgrade() and self._should_upgrade():
            return
        before = self.cycle
        self.cycle = Cycle(
            scope=scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=[],
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=version != "1.0" and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def on_message_complete(self) -> None:
        self._in_body = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
            return
        self._idle_since = self.loop.time()
        if self._timer is None:
            self._timer = self.loop.call_later(self.timeout_keep_alive, self._look)

    def _between_requests(self) -> bool:
        """Whether what came so far is answered, and the next head is not here yet."""
        if self.transport.is_closing():
            return False
        return self.cycle is None or self.cycle.response_complete

    def _await_head(self) -> None:
        self._head_due = self.loop.time() + self.head_seconds
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(self.head_seconds, self._look)

    def _look(self) -> None:
        """Ends the connection if a head or the next request is overdue, else looks again when one may be."""
        self._timer = None
        if not self._between_requests():
            return  # the end of the answer sets the timer again
        now = self.loop.time()
        due = self._head_due if self._head_due is not None else self._idle_since + self.timeout_keep_alive
        if now < due - 0.001:
            self._timer = self.loop.call_later(due - now, self._look)
        elif self._waiting_bytes:
            self._refuse(408, "the head of the request did not arrive in time", "head_timeout")
        else:
            self.transport.close()

    def _refuse(self, status: int, message: str, code: str) -> None:
        body = error_body(RequestError(message, status=status, code=code))
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
