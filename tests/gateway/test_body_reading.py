"""Reading a body: bounded in bytes and in time, whole or in parts, and a client that leaves half way."""

from __future__ import annotations

import asyncio

import pytest

from harness.gateway.bounds import MAX_DEPTH, check_json
from harness.gateway.reading import read_body
from pointsman.errors import RequestError


def receiving(*messages):
    """A `receive` that gives these messages, then nothing for ever."""
    left = list(messages)

    async def receive():
        if not left:
            await asyncio.sleep(60)
        return left.pop(0)

    return receive


def part(body: bytes, more: bool = False):
    return {"type": "http.request", "body": body, "more_body": more}


@pytest.mark.parametrize(
    ("messages", "body"),
    [
        ([part(b"whole")], b"whole"),
        ([part(b"")], b""),
        ([{"type": "http.request"}], b""),
        ([part(b"in ", True), part(b"three ", True), part(b"parts")], b"in three parts"),
        ([part(b"half", True), {"type": "http.disconnect"}], None),
        ([{"type": "http.disconnect"}], None),
    ],
)
async def test_what_is_read(messages, body):
    assert await read_body(receiving(*messages), [], 100) == body


@pytest.mark.parametrize(
    ("messages", "headers"),
    [
        ([part(b"x" * 11)], []),
        ([part(b"x" * 6, True), part(b"x" * 6, True)], []),
        ([], [(b"content-length", b"11")]),
    ],
)
async def test_too_large_is_413_as_soon_as_it_is_known(messages, headers):
    with pytest.raises(RequestError, match="larger than 10 bytes") as refused:
        await read_body(receiving(*messages), headers, 10)
    assert refused.value.status == 413


@pytest.mark.parametrize("messages", [[], [part(b"{", True)]])
async def test_a_body_that_does_not_come_is_408(messages):
    with pytest.raises(RequestError, match="did not arrive in time") as refused:
        await read_body(receiving(*messages), [], 10, seconds=0.05)
    assert refused.value.status == 408


@pytest.mark.parametrize(
    ("body", "refused"),
    [
        (b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, False),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), True),
        (b'{"a":[' * 51 + b"]}" * 51, True),
        (b'{"a":[' * 50 + b"]}" * 50, False),
        (b'["' + b"[" * 5000 + b'"]', False),
        (b'["\\"' + b"[" * 5000 + b'"]', False),
        (b'["\\\\"' + b"," + b"[" * 5000, True),
        (b"[" + b"[1,{}]," * 5000 + b"1]", False),
        (b"]" * 5000, False),  # no JSON: the parser refuses it at its first byte
    ],
)
def test_depth(body, refused):
    if refused:
        with pytest.raises(RequestError, match=f"nested deeper than {MAX_DEPTH} levels"):
            check_json(body)
    else:
        check_json(body)


def test_bytes_that_are_not_utf8():
    with pytest.raises(RequestError, match="not UTF-8: byte 2"):
        check_json(b"ab\xff")
