"""Clients that leave: the call upstream ends within two seconds, and what came so far is logged. Nothing leaks."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time

import pytest


def leave(gateway, *, after: bytes | None, stream: bool = True, wait: float = 0.0, **fields) -> float:
    """Sends a request, reads until `after` has come, waits, and closes; the time of closing."""
    body = json.dumps({"model": "alpha", "messages": [{"role": "user", "content": "x"}], "stream": stream, **fields})
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", gateway.port)) as client:
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        client.settimeout(5)
        got = b""
        while after is not None and after not in got:
            got += client.recv(65536)
        time.sleep(wait)
    return time.monotonic()


def newest(gateway, status="client_cancelled"):
    """The record of the newest decision of this gateway's home that ended so."""
    until = time.monotonic() + 3
    while time.monotonic() < until:
        gateway.ship()
        rows = gateway.sql("SELECT id FROM outcome WHERE status = :status ORDER BY id DESC LIMIT 1", status=status)
        if rows and gateway.state.recent.get(str(rows[0][0])) is not None:
            return gateway.record(str(rows[0][0]))
        time.sleep(0.05)
    raise AssertionError(f"no outcome {status}")


@pytest.fixture(scope="module")
def patient(make_gateway):
    """A gateway whose own limits are far away."""
    return make_gateway("[router]\nchain = ['default']\n[timeouts]\nfirst_token = 30\ngap = 30\ntotal = 60\n")


def test_leaving_in_the_middle_of_a_stream(patient, upstream, fake):
    upstream.script("m-alpha", fake.stream([fake.event(fake.delta(content="so far"))], ending="hang"))
    left = leave(patient, after=b"so far")
    assert upstream.wait_left(upstream.calls[0]) - left < 2
    record = newest(patient)
    assert record["outcome"]["client_closed"] is True
    call = record["calls"][0]
    assert (call["status"], call["completion"], call["usage_estimated"]) == ("cancelled", "so far", True)
    assert call["output_tokens"] == 2 and call["first_token_ms"] > 0
    assert float(call["cost"]) > 0


def test_leaving_while_the_worker_floods(patient, upstream, fake):
    flood = [fake.event(fake.delta(content="y" * 5000))] * 4000
    upstream.script("m-alpha", fake.stream(flood, ending="hang"))
    left = leave(patient, after=b"y", wait=0.3)
    assert upstream.wait_left(upstream.calls[0]) - left < 2
    assert newest(patient)["outcome"]["status"] == "client_cancelled"


def test_leaving_before_a_json_answer(patient, upstream, fake):
    upstream.script("m-alpha", fake.hang)
    left = leave(patient, after=None, stream=False, wait=0.2)
    assert upstream.wait_left(upstream.calls[0]) - left < 2
    record = newest(patient)
    assert record["outcome"]["client_closed"] is True
    assert (record["calls"][0]["status"], record["calls"][0]["completion"]) == ("cancelled", None)


def test_leaving_before_the_first_token_says_how_long_the_worker_was_silent(patient, upstream, fake):
    upstream.script("m-alpha", fake.stream([fake.ROLE, b": ping\n\n"], ending="hang"))
    left = leave(patient, after=None, wait=0.4)
    assert upstream.wait_left(upstream.calls[0]) - left < 2
    assert newest(patient)["outcome"]["reason"].startswith("the client left after 0.")


def test_leaving_right_after_a_tool_call_keeps_usage_and_the_worker(patient, upstream, fake):
    call = {"index": 0, "id": "call_leave", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    usage = {"prompt_tokens": 10, "completion_tokens": 3}
    chunk = {**fake.delta(tool_calls=[call]), "usage": usage}
    upstream.script("m-beta", fake.stream([fake.event(chunk)], ending="hang"), fake.text("42"))
    leave(patient, after=b"call_leave", model="beta")
    upstream.wait_left(upstream.calls[0])
    messages = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "tool_calls": [{k: v for k, v in call.items() if k != "index"}]},
        {"role": "tool", "tool_call_id": "call_leave", "content": "42"},
    ]
    following = patient.chat(messages=messages)  # before anything is in Postgres
    record = newest(patient)
    stored = record["calls"][0]
    assert (stored["input_tokens"], stored["output_tokens"], stored["usage_estimated"]) == (10, 3, False)
    assert stored["first_token_ms"] > 0 and stored["tool_calls"][0]["id"] == "call_leave"
    assert following.headers["x-pointsman-worker"] == "beta"
    assert following.headers["x-pointsman-episode-id"] == record["decision"]["episode_id"]
    assert patient.record(following)["decision"]["forced"] == "sticky"


def test_leaving_between_retries(make_gateway, upstream, fake):
    slow = make_gateway("[router]\nchain = ['default']\n[retries]\nbackoff = 20\n")
    upstream.script("m-alpha", fake.reply({}, 500))
    leave(slow, after=None, wait=0.3, stream=False)
    record = newest(slow)
    assert [call["status"] for call in record["calls"]] == ["error"]
    slow.close()


def test_a_client_that_reads_slowly_is_not_the_workers_fault(make_gateway, upstream, fake):
    quick = make_gateway("[router]\nchain = ['default']\n[timeouts]\ngap = 0.5\n")
    flood = [fake.event(fake.delta(content="y" * 60_000))] * 600
    upstream.script("m-alpha", fake.stream(flood, ending="hang"))
    leave(quick, after=b"yyyy", wait=1.5)
    record = newest(quick)
    assert record["outcome"]["reason"] == "the client took no byte within the gap limit"
    assert quick.state.breaker.healthy("alpha")
    quick.close()


def test_two_hundred_aborted_streams_leave_nothing_behind(patient, upstream, fake):
    async def census():
        return len(asyncio.all_tasks()), patient.state.in_flight

    def count():
        return asyncio.run_coroutine_threadsafe(census(), patient.loop).result(5)

    parts = [fake.event(fake.delta(content=f"part {n} ")) for n in range(3)]
    upstream.script("m-alpha", fake.stream(parts, pause=0.02, ending="hang"))
    patient.chat("x", model="beta")
    time.sleep(0.2)
    before = count()[0]
    ids = patient.sql("SELECT count(*) FROM outcome WHERE status = 'client_cancelled'")[0][0]

    def some(n):
        for k in range(25):
            leave(patient, after=[None, b"HTTP", b"part 0", b"part 1"][(n + k) % 4], wait=0.001 * (k % 7))

    threads = [threading.Thread(target=some, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    until = time.monotonic() + 4
    while count() != (before, 0) and time.monotonic() < until:
        time.sleep(0.05)
    assert count() == (before, 0)
    assert all(upstream.wait_left(call) for call in upstream.of("m-alpha"))
    patient.ship()
    after = patient.sql("SELECT count(*) FROM outcome WHERE status = 'client_cancelled'")[0][0]
    assert after - ids == 200  # those too that left before the call was sent
    open_decisions = patient.sql(
        "SELECT count(*) FROM decision d LEFT JOIN outcome o ON o.id = d.id "
        "WHERE o.id IS NULL AND d.origin = 'traffic' AND d.decided_at > now() - interval '1 minute'"
    )
    assert open_decisions[0][0] == 0
    assert patient.state.journal.lost == 0


def test_stopping_ends_streams_with_an_error_and_logs_them(make_gateway, upstream, fake):
    gateway = make_gateway("[router]\nchain = ['default']\n")
    upstream.script("m-alpha", fake.stream([fake.event(fake.delta(content="begun"))], ending="hang"))
    upstream.script("m-beta", fake.hang)
    got = {}

    def read(model, stream):
        got[model] = gateway.chat("x", model=model, stream=stream)

    threads = [threading.Thread(target=read, args=arguments) for arguments in (("alpha", True), ("beta", False))]
    for thread in threads:
        thread.start()
    until = time.monotonic() + 3
    while len(upstream.calls) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.2)
    gateway.server.should_exit = True
    gateway.thread.join(10)
    for thread in threads:
        thread.join(5)
    assert got["alpha"].text.endswith('"code":"stopping"}}\n\n') and "[DONE]" not in got["alpha"].text
    assert got["beta"].status_code == 503
    assert got["beta"].json()["error"]["code"] == "stopping"
    assert gateway.record(got["alpha"])["outcome"]["status"] == "truncated"
    assert gateway.record(got["beta"])["outcome"]["reason"] == "the gateway stopped"
    gateway.client.close()
    gateway.engine.dispose()
