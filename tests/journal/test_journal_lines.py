"""The journal's lines: whole or recognised as not."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import msgspec
import pytest

from pointsman.journal.lines import Payload, encode_line, read_lines

ROW = ("decision", {"id": "a", "cost": Decimal("0.10"), "eligible": msgspec.Raw(b'{"w":null}')})
OPEN = ("d1", "p1", None)


def test_a_line_is_read_as_it_was_written() -> None:
    data = encode_line(Payload([ROW], OPEN)) + encode_line(Payload([], None, "d1"))
    batch = read_lines(data, start=100)
    assert batch.lines == 2 and not batch.damaged
    assert batch.end == 100 + len(data)
    (table, row), *_ = batch.rows
    assert table == "decision"
    assert {name: bytes(value) for name, value in row.items()} == {
        "id": b'"a"',
        "cost": b'"0.10"',
        "eligible": b'{"w":null}',
    }
    assert batch.opened == [OPEN] and batch.closed == ["d1"]


def test_every_torn_tail_is_left_for_later() -> None:
    first, second = encode_line(Payload([ROW])), encode_line(Payload([ROW], OPEN))
    for cut in range(len(second)):
        batch = read_lines(first + second[:cut])
        assert (batch.lines, batch.end, batch.damaged) == (1, len(first), [])


def test_a_changed_byte_anywhere_makes_the_line_damaged_and_only_that_one() -> None:
    line = encode_line(Payload([ROW]))
    for place in range(len(line) - 1):
        bad = bytearray(line)
        bad[place] ^= 0x01
        if bad[place] == 0x0A:
            continue
        batch = read_lines(line + bytes(bad) + line)
        assert batch.lines == 3
        assert batch.damaged == [bytes(bad[:-1])] or (place == 8 and not batch.damaged)  # the space says nothing
        assert len(batch.rows) >= 2


@pytest.mark.parametrize("junk", [b"", b"x", b"00000000 ", b"\0" * 40, b"\xff\xfe garbage", b"0x00000 {}"])
def test_what_is_no_line_is_damaged(junk: bytes) -> None:
    batch = read_lines(junk + b"\n" + encode_line(Payload([ROW])))
    assert (batch.lines, batch.damaged, len(batch.rows)) == (2, [junk], 1)


def test_a_right_checksum_over_what_is_no_payload_is_damaged() -> None:
    from zlib import crc32

    body = b'{"r":7}'
    batch = read_lines(b"%08x %b\n" % (crc32(body), body))
    assert len(batch.damaged) == 1 and not batch.rows


def test_the_limit_stops_between_lines() -> None:
    line = encode_line(Payload([ROW]))
    batch = read_lines(line * 5, limit=3)
    assert (batch.lines, batch.end) == (3, 3 * len(line))


def test_newlines_between_json_tokens_do_not_break_the_frame() -> None:
    body = msgspec.Raw(b'{\n  "a": "x\\ny",\r\n  "b": [1,\n2]\n}')
    batch = read_lines(encode_line(Payload([("request", {"body": body})])))
    assert not batch.damaged
    assert msgspec.json.decode(batch.rows[0][1]["body"]) == {"a": "x\ny", "b": [1, 2]}


def test_what_json_cannot_hold_is_cleaned_and_the_rest_kept() -> None:
    row = {
        "text": "\ud83d and \x00",
        "body": {"deep": ["\udc00", 2**70, float("nan")]},
        "cost": Decimal("1.50"),
        "at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "id": UUID(int=1),
        "raw": msgspec.Raw(b'{"n":1.10}'),
    }
    batch = read_lines(encode_line(Payload([("call", row)], OPEN, "d0")))
    values = {name: bytes(value) for name, value in batch.rows[0][1].items()}
    assert msgspec.json.decode(values["text"]) == "\ufffd and \ufffd"
    assert msgspec.json.decode(values["body"]) == {"deep": ["\ufffd", 2**70, None]}
    assert values["cost"] == b'"1.50"' and values["raw"] == b'{"n":1.10}'
    assert values["at"] == b'"2026-01-02T03:04:05Z"'
    assert batch.opened == [OPEN] and batch.closed == ["d0"]


def test_a_nesting_that_cannot_be_read_is_damaged_not_fatal() -> None:
    deep = msgspec.Raw(b"[" * 100_000 + b"]" * 100_000)
    batch = read_lines(encode_line(Payload([("request", {"body": deep})])) + encode_line(Payload([ROW])))
    assert len(batch.damaged) == 1 and len(batch.rows) == 1
