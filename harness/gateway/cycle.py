"""One request and its answer over HTTP/1.1: uvicorn's cycle, with what is asked of it most made cheap.

It is ASGI to whoever calls it. Two things more it can say without being awaited: the whole body, where it has come,
and that the client has left. The head of an answer whose length is known leaves with its body.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from harness.gateway.responses import Message, Receive

_CONTROLS = bytes((*range(9), *range(10, 32), 127))


class Cycle(RequestResponseCycle):
    """Validates what a head may hold as one text, not name by name."""

    _head: bytes | None = None  # begun, not sent
    _bodiless = False
    _on_leaving: Callable[[], None] | None = None

    def whole_body(self) -> bytes | None:
        """The body, if all of it is here; to be taken once."""
        if self.more_body or self.disconnected or self.response_complete:
            return None
        body = bytes(self.body)
        self.body = bytearray()
        self.message_event.clear()
        self.flow.resume_reading()
        return body

    def when_left(self, call: Callable[[], None] | None) -> None:
        """Who is told when the client leaves before its answer is complete: one, or nobody any more."""
        self._on_leaving = call
        if call is not None and self.disconnected:
            call()

    def lost(self) -> None:
        """The connection is gone."""
        if self.response_complete:
            return
        self.disconnected = True
        if self._on_leaving is not None:
            self._on_leaving()

    async def send(self, message: Any) -> None:
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if self.response_started:
            self._send_body(message)
        else:
            self._begin(message)

    def _begin(self, message: Message) -> None:
        if message["type"] != "http.response.start":
            raise RuntimeError(f"expected http.response.start, not {message['type']}")
        status: int = message["status"]
        self._bodiless = self.scope["method"] == "HEAD" or status in (204, 304)
        lines: list[bytes] = []
        closing = not self.keep_alive
        for name, value in message.get("headers", ()):
            name = name.lower()
            lines.append(name + b": " + value)
            if name == b"content-length":
                self.expected_content_length, self.chunked_encoding = int(value), False
            elif name == b"transfer-encoding" and value.lower() == b"chunked" and self.chunked_encoding is None:
                self.chunked_encoding = True
            elif name == b"connection" and b"close" in value.lower():
                self.keep_alive = closing = False
        if len((text := b"".join(lines)).translate(None, _CONTROLS)) != len(text):
            raise RuntimeError("a header holds a control character")
        if closing:
            lines.append(b"connection: close")
        if self.chunked_encoding is None and not self._bodiless:
            self.chunked_encoding = True
            lines.append(b"transfer-encoding: chunked")
        self.response_started = True
        self.waiting_for_100_continue = False
        head = STATUS_LINE[status] + b"\r\n".join((*lines, b"\r\n"))
        if self.chunked_encoding:
            self.transport.write(head)
        else:
            self._head = head

    def _send_body(self, message: Message) -> None:
        if message["type"] != "http.response.body" or self.response_complete:
            raise RuntimeError(f"{message['type']} does not belong here")
        body: bytes = message.get("body", b"")
        more: bool = message.get("more_body", False)
        if self._bodiless:
            self.expected_content_length = 0
            body = b""
        elif self.chunked_encoding:
            body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + (b"" if more else b"0\r\n\r\n")
        else:
            self.expected_content_length -= len(body)
            if self.expected_content_length < 0 or (self.expected_content_length and not more):
                raise RuntimeError("the body is not as long as its Content-Length")
        if self._head is not None:
            body, self._head = self._head + body, None
        if body:
            self.transport.write(body)
        if not more:
            self.response_complete = True
            self._on_leaving = None
            self.message_event.set()
            if not self.keep_alive:
                self.transport.close()
            self.on_response()


def cycle_of(receive: Receive) -> Cycle | None:
    """The cycle behind an ASGI `receive`, where the server is ours and nothing stands between."""
    found = getattr(receive, "__self__", None)
    return found if isinstance(found, Cycle) else None
