"""Server-sent events as bytes: cut into events at blank lines, and read only as far as accounting needs.

Splitting is on newline bytes alone (LF, CRLF, CR), so an event or a character cut anywhere arrives
whole; bytes are forwarded as they came.
"""

from __future__ import annotations

import re

from pointsman.errors import UpstreamError

MAX_EVENT_BYTES = 16 * 1024 * 1024
DONE = b"[DONE]"
_END = re.compile(rb"\r\n\r\n|\n\n|\r\r|\n\r\n|\r\n\n")
_LONGEST_END = 4
_BOM = b"\xef\xbb\xbf"


class EventSplitter:
    """Feed it chunks; it gives whole events, each with the blank line that ends it."""

    def __init__(self) -> None:
        self._rest = b""
        self._searched = 0  # how much of the rest is known to end no event
        self._first = True

    def feed(self, chunk: bytes) -> list[bytes]:
        """The events that `chunk` completes."""
        data = self._rest + chunk if self._rest else chunk
        if self._first and data:
            if len(data) < 3 and _BOM.startswith(data):
                self._rest = data
                return []
            data = data.removeprefix(_BOM)
            self._first = False
        if data.endswith(b"\n\n") and data.find(b"\n\n") == len(data) - 2 and b"\r" not in data:
            self._rest, self._searched = b"", 0
            return [data]  # the usual case: one chunk, one event
        events: list[bytes] = []
        start = 0
        # A chunk that ends in CR may be followed by LF of the same line end.
        end = len(data) - 1 if data.endswith(b"\r") else len(data)
        for match in _END.finditer(data, self._searched, end):
            events.append(data[start : match.end()])
            start = match.end()
        self._rest = data[start:]
        self._searched = max(len(self._rest) - _LONGEST_END, 0)
        if len(self._rest) > MAX_EVENT_BYTES:
            raise UpstreamError("malformed", f"an event is larger than {MAX_EVENT_BYTES} bytes")
        return events

    def finish(self) -> list[bytes]:
        """What is left when the stream has ended: an event whose blank line never came, or nothing."""
        rest, self._rest = self._rest, b""
        if not rest.strip():
            return []
        return [rest.rstrip(b"\r\n") + b"\n\n"]


def event_data(event: bytes) -> bytes | None:
    """The `data` of an event, its lines joined by LF; None for a comment or an event without data."""
    if event.startswith(b"data: ") and event.find(b"\n") >= len(event) - 2 and b"\r" not in event:
        return event[6:].rstrip(b"\n")
    lines: list[bytes] = []
    for line in event.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"):
        if line.startswith(b"data:"):
            value = line[5:]
            lines.append(value[1:] if value.startswith(b" ") else value)
    return b"\n".join(lines) if lines else None
