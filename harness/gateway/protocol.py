"""HTTP/1.1 as uvicorn serves it, with a limit to how long a request's head may take, and how large it may be.

uvicorn waits for ever for a head that was begun or never was, so a few slow clients could hold every
connection. A body has its own limits, where it is read; an idle connection uvicorn's keep-alive.
"""

from __future__ import annotations

import asyncio
import socket
from http import HTTPStatus

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

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

    _deadline: asyncio.TimerHandle | None = None
    _waiting_bytes = 0  # of the head that has begun
    _in_body = False
    _looking = False  # at what is unsent

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_came()
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
        elif self._deadline is None and self.timeout_keep_alive_task is None:
            self._await_head()

    def on_headers_complete(self) -> None:
        self._head_came()
        self._in_body = True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_body = False
        super().on_message_complete()

    def _between_requests(self) -> bool:
        """Whether what came so far is answered, and the next head is not here yet."""
        if self.transport.is_closing():
            return False
        return self.cycle is None or self.cycle.response_complete

    def _await_head(self) -> None:
        self._deadline = self.loop.call_later(self.head_seconds, self._late)

    def _head_came(self) -> None:
        self._waiting_bytes = 0
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self) -> None:
        self._deadline = None
        if not self._between_requests():
            return
        if self._waiting_bytes:
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
