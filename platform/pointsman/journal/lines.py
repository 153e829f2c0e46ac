"""One line of the journal: a CRC-32, a space, JSON, a newline. A torn or damaged line is recognised.

The JSON is `{"r": [[table, row], …]}` with, where a decision begins, `"o": [decision, project, episode]`,
and where it ends, `"c": decision`. A segment's first line may be `{"open": [[decision, project, episode], …]}`:
the decisions that began in earlier segments and have not ended, so that a reader needs no older file
to know what a dead process left open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import msgspec

from pointsman.database.clean import clean_json, clean_text

OpenDecision = tuple[str, str, str | None]
"""Decision id, project id, episode id."""

TableRow = tuple[str, dict[str, Any]]

_encode = msgspec.json.Encoder(decimal_format="string").encode


class Payload(msgspec.Struct, rename={"rows": "r", "opens": "o", "closes": "c"}, omit_defaults=True):
    """The content of a line. Rows' JSON columns may be `msgspec.Raw`."""

    rows: list[tuple[str, dict[str, Any]]] = []
    opens: OpenDecision | None = None
    closes: str | None = None
    open: list[OpenDecision] = []


class _Read(msgspec.Struct, rename={"rows": "r", "opens": "o", "closes": "c"}):
    rows: list[tuple[str, dict[str, msgspec.Raw]]] = []
    opens: OpenDecision | None = None
    closes: str | None = None
    open: list[OpenDecision] = []


_decode = msgspec.json.Decoder(_Read).decode


def encode_line(payload: Payload) -> bytes:
    """The bytes of one line. What JSON cannot hold (a lone surrogate) is cleaned as Postgres would need it."""
    try:
        body = _encode(payload)
    except (UnicodeEncodeError, RecursionError):
        body = _encode(_cleaned(payload))
    if b"\n" in body:  # from `Raw` JSON, where a newline can only stand between its tokens
        body = body.replace(b"\n", b" ")
    return b"%08x %b\n" % (crc32(body), body)


def _cleaned(payload: Payload) -> Payload:
    rows = [
        (table, {clean_text(column): msgspec.Raw(clean_json(value).encode()) for column, value in row.items()})
        for table, row in payload.rows
    ]
    return Payload(rows, payload.opens, payload.closes, payload.open)


@dataclass
class Batch:
    """Some lines as they were read: rows, what they opened and closed, and where the reader stands."""

    rows: list[tuple[str, dict[str, msgspec.Raw]]] = field(default_factory=list)
    opened: list[OpenDecision] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    damaged: list[bytes] = field(default_factory=list)
    lines: int = 0
    end: int = 0

    def add(self, payload: _Read) -> None:
        self.rows += payload.rows
        self.opened += payload.open
        if payload.opens:
            self.opened.append(payload.opens)
        if payload.closes:
            self.closed.append(payload.closes)


def read_lines(data: bytes, *, start: int = 0, limit: int = 1_000) -> Batch:
    """Up to `limit` whole lines of `data`, which begins at file offset `start`.

    An unfinished last line is left for later; a whole line whose checksum fails, or that cannot be
    read, is put aside as damaged.
    """
    batch = Batch(end=start)
    for line in _whole_lines(data):
        if batch.lines >= limit:
            break
        batch.end += len(line) + 1
        batch.lines += 1
        try:
            if int(line[:8], 16) != crc32(line[9:]):
                raise ValueError
            batch.add(_decoded(line[9:]))
        except (ValueError, msgspec.MsgspecError, RecursionError):
            batch.damaged.append(line)
    return batch


def _decoded(body: bytes) -> _Read:
    """What a writer put there, whose `Raw` values nobody has read before: NaN and bad UTF-8 are cleaned."""
    try:
        return _decode(body)
    except msgspec.MsgspecError:
        return _decode(clean_json(body).encode())


def _whole_lines(data: bytes) -> Iterator[bytes]:
    position = 0
    while (end := data.find(b"\n", position)) >= 0:
        yield data[position:end]
        position = end + 1
