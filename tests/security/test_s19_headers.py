"""S19: what a client calls its request, or would call its decision, names nothing here."""

from __future__ import annotations

import json
import socket

import pytest

from pointsman.ids import new_id


def test_a_clients_ids_overwrite_nothing(gateway, upstream):
    """Two keys, one id: two decisions, each with an id of ours and its own row."""
    mine, other = gateway.key(project="mine"), gateway.key(project="other")
    given = new_id()
    named = {
        "x-request-id": given,
        "x-pointsman-decision-id": given,
        "x-pointsman-propensity": "1",
        "x-trace-id": given,
    }
    answers = [gateway.chat("x", headers={**named, "authorization": f"Bearer {key}"}) for key in (mine, other)]
    ids = [answer.headers["x-pointsman-decision-id"] for answer in answers]
    assert given not in ids and ids[0] != ids[1]
    records = [gateway.record(identity) for identity in ids]
    assert records[0]["decision"]["project_id"] != records[1]["decision"]["project_id"]
    assert gateway.sql("SELECT id FROM decision WHERE id = :id OR request_id = :id", id=given) == []


@pytest.mark.parametrize(
    "header",
    [b"x-request-id: a\r\nx-pointsman-worker: beta", b"x-request-id: " + b"a" * 10_000, b"x-request-id: \xff\xfe"],
    ids=["split", "long", "bytes"],
)
def test_a_strange_header_is_no_fault_and_comes_back_in_nothing(gateway, upstream, header):
    body = json.dumps({"model": "pointsman", "messages": [{"role": "user", "content": "x"}]}).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + header
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=10) as sock:
        sock.sendall(head + b"\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        answer = b""
        while part := sock.recv(65536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"x-request-id" not in answer and b"a" * 100 not in answer
    assert b"x-pointsman-worker: alpha" in answer  # a header of ours that is no hint decides nothing
    assert set(upstream.calls[0].headers) == {"host", "content-type", "authorization", "content-length"}


def test_a_header_with_a_line_break_in_it_is_refused(gateway):
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=10) as sock:
        sock.sendall(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nx-request-id: a\rb: c\r\n\r\n")
        assert sock.recv(65536).startswith(b"HTTP/1.1 400")
