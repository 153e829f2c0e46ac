"""The limits of a request's head: slow ones, silent connections and endless ones end; all else is left alone."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time

import pytest
import uvicorn

from harness.gateway.protocol import RequestProtocol

SLACK = 2.0
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Quick(RequestProtocol):
    """The same with short limits."""

    head_seconds = 0.3
    max_head_bytes = 2_000


async def app(scope, receive, send):
    """Answers at once, but for `/slow`, and never reads a body."""
    if scope["type"] != "http":
        return
    if scope["path"] == "/slow":
        await asyncio.sleep(0.6)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture(scope="module")
def port():
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(app, loop="uvloop", http=Quick, ws="none", lifespan="off", log_config=None, timeout_keep_alive=2)
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield listener.getsockname()[1]
    server.should_exit = True
    thread.join(5)
    assert not thread.is_alive()


@pytest.fixture
def client(port):
    with socket.create_connection(("127.0.0.1", port), timeout=3) as made:
        yield made


def read_to_end(client) -> bytes:
    got = b""
    while data := client.recv(65536):
        got += data
    return got


def answer(client) -> bytes:
    """One whole answer."""
    got = b""
    while not got.endswith(b"\r\n\r\nok"):
        data = client.recv(65536)
        assert data, f"closed after {got!r}"
        got += data
    return got


def test_a_connection_that_says_nothing_is_closed(client):
    began = time.monotonic()
    assert read_to_end(client) == b""
    assert 0.25 < time.monotonic() - began < 0.3 + SLACK


@pytest.mark.parametrize("said", [b"GET / HT", GET[:-2], b"POST / HTTP/1.1\r\nHost: localhost\r\nX-A: "])
def test_a_head_that_does_not_end_is_refused(client, said):
    client.sendall(said)
    got = read_to_end(client)
    assert got.startswith(b"HTTP/1.1 408 Request Timeout\r\n") and b"connection: close" in got
    assert json.loads(got.partition(b"\r\n\r\n")[2])["error"]["code"] == "head_timeout"


def test_dripping_bytes_do_not_lengthen_the_time(client):
    began = time.monotonic()
    client.sendall(b"GET / HTTP/1.1\r\n")
    with pytest.raises(OSError):
        while time.monotonic() - began < 3:
            client.sendall(b"X-A: b\r\n")
            time.sleep(0.05)
    assert time.monotonic() - began < 0.3 + SLACK


def test_a_second_head_on_the_same_connection_is_held_to_it_too(client):
    client.sendall(GET)
    answer(client)
    time.sleep(0.5)  # idle between requests: keep-alive's time, not the head's
    client.sendall(GET)
    answer(client)
    client.sendall(GET[:20])
    assert read_to_end(client).startswith(b"HTTP/1.1 408")


def test_empty_lines_do_not_hold_a_connection(client):
    client.sendall(GET)
    answer(client)
    client.sendall(b"\r\n")
    began = time.monotonic()
    read_to_end(client)
    assert time.monotonic() - began < 0.3 + SLACK


def test_a_slow_answer_is_not_a_slow_head(client):
    client.sendall(GET.replace(b"GET /", b"GET /slow"))
    assert answer(client).startswith(b"HTTP/1.1 200")


def test_pipelined_requests_are_answered(client):
    client.sendall(GET.replace(b"GET /", b"GET /slow") + GET + GET)
    got = b""
    while got.count(b"HTTP/1.1 200") < 3 or not got.endswith(b"ok"):
        data = client.recv(65536)
        assert data, f"closed after {got!r}"
        got += data
    assert got.count(b"HTTP/1.1 200") == 3


def test_an_endless_head_is_refused(client):
    client.sendall(b"GET / HTTP/1.1\r\nX-A: ")
    time.sleep(0.05)
    client.sendall(b"a" * 3_000)
    assert read_to_end(client).startswith(b"HTTP/1.1 431 ")


def test_the_rest_of_a_body_that_nobody_reads_is_let_in(client):
    client.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6000\r\n\r\n" + b"x" * 1000)
    assert answer(client).startswith(b"HTTP/1.1 200")
    client.sendall(b"x" * 5000)
    time.sleep(0.05)
    client.sendall(GET)
    assert answer(client).startswith(b"HTTP/1.1 200")


def test_the_gateway_serves_with_it(gateway, upstream):
    assert isinstance(gateway.server.config.http_protocol_class, type)
    assert gateway.server.config.http_protocol_class is RequestProtocol
    assert RequestProtocol.head_seconds == 15.0
    assert gateway.chat("x").status_code == 200
