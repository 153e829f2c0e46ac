"""Every surface meets a worker's faults: the client sees an error of its own API, the rows say what happened."""

from __future__ import annotations

import json
import socket
import time

import pytest

ERROR = {"error": {"message": "it broke", "type": "server_error", "code": None}}
LIMITED = {"error": {"message": "slow down", "type": "rate_limit_error", "code": "rate_limit_exceeded"}}
USER = [{"role": "user", "content": "x"}]
BODIES = {
    "responses": ("/v1/responses", {"input": "x"}),
    "messages": ("/v1/messages", {"messages": USER, "max_tokens": 20}),
}


@pytest.fixture(autouse=True)
def all_well(gateway):
    for name in ("alpha", "beta", "gamma"):
        gateway.state.breaker.succeeded(name)


def ask(gateway, surface: str, **fields):
    path, body = BODIES[surface]
    return gateway.client.post(path, json={"model": "alpha", **body, **fields})


def check_shape(surface: str, answer, status: int) -> None:
    error = answer.json()["error"]
    if surface == "messages":
        assert answer.json()["type"] == "error" and set(error) == {"type", "message"}
        kinds = {429: "rate_limit_error", 400: "invalid_request_error", 504: "timeout_error", 502: "api_error"}
        assert error["type"] == kinds[status]
    else:
        assert set(error) == {"message", "type", "param", "code"}


# name: (behaviour by whether it streams, status, outcome, calls)
BEFORE = {
    "500": (lambda f, s: f.reply(ERROR, 500), 502, "upstream_error", 3),
    "429 in seconds": (lambda f, s: f.reply(LIMITED, 429, {"retry-after": "30"}), 429, "upstream_error", 1),
    "429 by a date": (
        lambda f, s: f.reply(LIMITED, 429, {"retry-after": "Wed, 21 Oct 2099 07:28:00 GMT"}),
        429,
        "upstream_error",
        1,
    ),
    "reset": (lambda f, s: f.reset, 502, "upstream_error", 3),
    "hang": (lambda f, s: f.hang, 504, "timeout", None),
    "400": (lambda f, s: f.reply(ERROR, 400), 400, "rejected", 1),
    "first event an error": (lambda f, s: f.stream(f.ROLE + f.event(ERROR)), 502, "upstream_error", 3),
    "malformed": (lambda f, s: f.stream(b"data: {oops\n\n") if s else f.reply(b"{oops"), 502, "upstream_error", 3),
    "200 with an error": (lambda f, s: f.reply(ERROR), 502, "upstream_error", 3),
}


@pytest.mark.parametrize("streamed", [True, False], ids=["SSE", "JSON"])
@pytest.mark.parametrize("name", BEFORE)
@pytest.mark.parametrize("surface", BODIES)
def test_before_content(gateway, upstream, fake, surface, name, streamed):
    make, status, outcome, calls = BEFORE[name]
    upstream.script("m-alpha", make(fake, streamed))
    answer = ask(gateway, surface, stream=streamed)
    assert answer.status_code == status, answer.text
    check_shape(surface, answer, status)
    assert ("retry-after" in answer.headers) == (status == 429)
    assert answer.headers["x-pointsman-worker"] == "alpha"
    record = gateway.record(answer)
    assert record["request"]["surface"] == surface
    assert (record["outcome"]["status"], record["outcome"]["http_status"]) == (outcome, status)
    assert len(record["calls"]) == len(upstream.calls)
    if calls is not None:
        assert len(upstream.calls) == calls


AFTER = {
    "reset": (lambda f: f.stream(f.event(f.delta(content="so")), ending="reset"), "connect"),
    "cut": (lambda f: f.stream(f.event(f.delta(content="so")), ending="cut"), "connect"),
    "silence": (lambda f: f.stream(f.event(f.delta(content="so")), ending="hang"), "timeout"),
    "error event": (lambda f: f.stream(f.event(f.delta(content="so")) + f.event(ERROR)), "server"),
    "malformed event": (lambda f: f.stream(f.event(f.delta(content="so")) + b"data: {oops\n\n"), "malformed"),
    "closed early": (lambda f: f.stream(f.event(f.delta(content="so"))), "truncated"),
}


@pytest.mark.parametrize("name", AFTER)
@pytest.mark.parametrize("surface", BODIES)
def test_after_content(gateway, upstream, fake, running, surface, name):
    make, fault = AFTER[name]
    upstream.script("m-alpha", make(fake))
    answer = ask(gateway, surface, stream=True)
    data = [json.loads(line) for line in running.events(answer)]
    kinds = [event["type"] for event in data]
    assert answer.status_code == 200
    if surface == "messages":
        assert kinds == ["message_start", "content_block_start", "content_block_delta", "error"]
        assert data[-1]["error"]["type"] == ("timeout_error" if fault == "timeout" else "api_error")
    else:
        assert kinds[-2:] == ["error", "response.failed"] and "response.output_item.done" not in kinds
        assert data[-2]["code"] == fault
        assert data[-1]["response"]["output"][0]["content"][0]["text"] == "so"
    record = gateway.record(answer)
    assert record["outcome"]["status"] == "truncated" and len(upstream.calls) == 1
    call = record["calls"][0]
    assert (call["status"], call["fault"], call["completion"]) == ("truncated", fault, "so")


@pytest.mark.parametrize("surface", BODIES)
def test_a_fallback_answers_before_content(gateway, upstream, fake, surface):
    upstream.script("m-alpha", fake.stream(fake.ROLE, ending="reset"))
    upstream.script("m-beta", fake.text("from beta"))
    answer = ask(gateway, surface, stream=True, model="pointsman")
    assert answer.headers["x-pointsman-worker"] == "beta"
    record = gateway.record(answer)
    assert record["decision"]["chosen"] == "alpha" and record["outcome"]["worker"] == "beta"


@pytest.mark.parametrize("surface", BODIES)
def test_a_client_that_leaves_ends_the_call(gateway, upstream, fake, surface):
    upstream.script("m-alpha", fake.stream(fake.event(fake.delta(content="so")), ending="hang"))
    path, body = BODIES[surface]
    text = json.dumps({"model": "alpha", "stream": True, **body})
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=5) as client:
        client.sendall(f"{head}Content-Length: {len(text)}\r\n\r\n{text}".encode())
        got = b""
        while b'"so"' not in got:
            got += client.recv(65536)
    left = time.monotonic()
    assert upstream.wait_left(upstream.calls[0]) - left < 2
    decision = next(line.split(b": ")[1] for line in got.split(b"\r\n") if line.startswith(b"x-pointsman-decision-id"))
    record = gateway.record(decision.decode())
    assert (record["outcome"]["status"], record["outcome"]["client_closed"]) == ("client_cancelled", True)
    assert record["calls"][0]["completion"] == "so"


@pytest.mark.parametrize("surface", BODIES)
@pytest.mark.parametrize("cut", [1, 7, 64])
def test_a_stream_cut_anywhere_is_told_alike(gateway, upstream, fake, running, surface, cut):
    whole = b": hello\n\n" + fake.words("你", "好 ", "🌍", "\u2028").replace(b"\n\n", b"\r\n\r\n")
    upstream.script("m-alpha", fake.stream([whole[n : n + cut] for n in range(0, len(whole), cut)]))
    data = [json.loads(line) for line in running.events(ask(gateway, surface, stream=True))]
    if surface == "messages":
        said = [event["delta"]["text"] for event in data if event["type"] == "content_block_delta"]
        assert data[-2]["usage"]["output_tokens"] == 5
    else:
        said = [event["delta"] for event in data if event["type"] == "response.output_text.delta"]
        assert data[-1]["response"]["usage"]["output_tokens"] == 5
    assert "".join(said) == "你好 🌍\u2028"


@pytest.mark.parametrize("surface", BODIES)
def test_a_stream_that_gives_no_reason_for_its_end_is_complete_after_done(gateway, upstream, fake, running, surface):
    upstream.script("m-alpha", fake.stream(fake.event(fake.delta(content="so")) + fake.DONE))
    answer = ask(gateway, surface, stream=True)
    last = json.loads(running.events(answer)[-1])
    assert last["type"] == ("message_stop" if surface == "messages" else "response.completed")
    outcome = gateway.record(answer)["outcome"]
    assert (outcome["status"], outcome["reason"]) == ("ok", "no finish_reason")


@pytest.mark.parametrize("surface", BODIES)
@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'"x"', b'{"model": "alpha", "input": 1e999, "messages": NaN}', b"\xff{}", b"[" * 5000]
)
def test_hostile_bodies_are_refused_in_the_right_shape(gateway, surface, body):
    path, _ = BODIES[surface]
    answer = gateway.client.post(path, content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    check_shape(surface, answer, 400)
    assert gateway.record(answer)["request"]["surface"] == surface
