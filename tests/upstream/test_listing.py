"""One HTTP exchange and a server's list of models: what is read, what is refused, what is never sent on."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager

import pytest

from pointsman.plain_http import NoAnswer, exchange
from pointsman.upstream.listing import ListedModel, list_models


@contextmanager
def answering(reply: bytes):
    """A server that answers every connection with these bytes; gives its address and the requests it got."""
    seen: list[bytes] = []
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                seen.append(connection.recv(65536))
                connection.sendall(reply)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1", seen
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(timeout=5)


def http(body: bytes, status: str = "200 OK", extra: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n{extra}\r\n".encode() + body


@pytest.mark.parametrize(
    ("body", "models"),
    [
        (b'{"data":[{"id":"a"},{"id":"b","max_model_len":4096}]}', (ListedModel("a"), ListedModel("b", 4096))),
        (b'[{"id":"a","context_length":8}]', (ListedModel("a", 8),)),
        (b'{"data":[{"id":"a","max_model_len":"many"},{"id":3},null]}', (ListedModel("a"),)),
        (b'{"data":[]}', ()),
        (b'{"object":"list"}', None),
        (b"not json", None),
        (b"[" * 100_000, None),
    ],
)
def test_lists_of_models(body, models):
    with answering(http(body)) as (address, seen):
        listing = list_models(address, {"authorization": "Bearer k"})
    assert (listing.status, listing.models) == (200, models)
    assert seen[0].startswith(b"GET /v1/models HTTP/1.1\r\n")
    assert b"\r\nauthorization: Bearer k\r\n" in seen[0]


def test_a_refusal_keeps_its_status_and_has_no_models():
    with answering(http(b'{"data":[{"id":"a"}]}', "401 Unauthorized")) as (address, _):
        assert list_models(address).status == 401
        assert list_models(address).models is None


def test_a_redirect_is_not_followed_so_no_key_leaves_for_elsewhere():
    with (
        answering(http(b"{}")) as (elsewhere, there),
        answering(http(b"", "302 Found", f"location: {elsewhere}/models\r\n")) as (address, here),
    ):
        assert list_models(address, {"authorization": "Bearer k"}).status == 302
        assert (len(here), there) == (1, [])


def test_a_body_is_read_up_to_its_limit():
    with answering(http(b"x" * 5000)) as (address, _):
        assert exchange("GET", address, limit=1000).body == b"x" * 1000


@pytest.mark.parametrize(
    ("reply", "said"),
    [(b"SSH-2.0-OpenSSH\r\n", "not an HTTP answer"), (b"", "not an HTTP answer|connection reset")],
)
def test_what_is_no_http_is_no_answer(reply, said):
    with answering(reply) as (address, _), pytest.raises(NoAnswer, match=said):
        exchange("GET", address)


def test_a_closed_port_and_a_silent_one_are_no_answer():
    with pytest.raises(NoAnswer, match="connection refused"):
        exchange("GET", "http://127.0.0.1:1/")
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(NoAnswer, match=r"no answer within 0\.2 s"):
        exchange("GET", f"http://127.0.0.1:{silent.getsockname()[1]}/", timeout=0.2)


def test_a_key_with_a_line_end_is_not_sent():
    with answering(http(b"{}")) as (address, seen):
        with pytest.raises(NoAnswer, match="cannot be sent"):
            list_models(address, {"authorization": "Bearer k\r\nx-evil: 1"})
        assert all(b"x-evil" not in request for request in seen)
