"""The fault matrix: what each fault of a worker makes of the client's answer, the outcome and the number of calls."""

from __future__ import annotations

import itertools
import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

ERROR = {"error": {"message": "it broke", "type": "server_error", "code": None}}
LIMITED = {"error": {"message": "slow down", "type": "rate_limit_error", "code": "rate_limit_exceeded"}}


@pytest.fixture(autouse=True)
def all_well(gateway):
    """Every test begins with every worker's circuit closed."""
    for name in ("alpha", "beta", "gamma"):
        gateway.state.breaker.succeeded(name)


def soon(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


# name: (behaviour, for which shapes, status to a client of one worker, outcome, calls in all)
BEFORE = {
    "500": (lambda f, s: f.reply(ERROR, 500), 502, "upstream_error", 3),
    "500 without a body": (lambda f, s: f.reply(b"", 500), 502, "upstream_error", 3),
    "429": (lambda f, s: f.reply(LIMITED, 429), 429, "upstream_error", 3),
    "429 in seconds": (lambda f, s: f.reply(LIMITED, 429, {"retry-after": "0.1"}), 429, "upstream_error", 3),
    "429 for long": (lambda f, s: f.reply(LIMITED, 429, {"retry-after": "30"}), 429, "upstream_error", 1),
    "429 by a date": (lambda f, s: f.reply(LIMITED, 429, {"retry-after": soon(30)}), 429, "upstream_error", 1),
    "429 by a far date": (
        lambda f, s: f.reply(LIMITED, 429, {"retry-after": "Wed, 21 Oct 2099 07:28:00 GMT"}),
        429,
        "upstream_error",
        1,
    ),
    "429 negative": (lambda f, s: f.reply(LIMITED, 429, {"retry-after": "-1"}), 429, "upstream_error", 3),
    "429 nonsense": (lambda f, s: f.reply(LIMITED, 429, {"retry-after": "abc"}), 429, "upstream_error", 3),
    "reset": (lambda f, s: f.reset, 502, "upstream_error", 3),
    "hang": (lambda f, s: f.hang, 504, "timeout", None),
    "401": (lambda f, s: f.reply(ERROR, 401), 502, "upstream_error", 1),
    "404": (lambda f, s: f.reply(ERROR, 404), 502, "upstream_error", 3),
    "400": (lambda f, s: f.reply(ERROR, 400), 400, "rejected", 1),
    "302": (lambda f, s: f.reply(b"", 302, {"location": "/"}), 502, "upstream_error", 3),
    "200 with an error body": (lambda f, s: f.reply(ERROR), 502, "upstream_error", 3),
    "200 with an empty body": (lambda f, s: f.reply(b""), 502, "upstream_error", 3),
    "200 with HTML": (lambda f, s: f.reply(b"<html>", 200, {"content-type": "text/html"}), 502, "upstream_error", 3),
    "200 without choices": (lambda f, s: f.reply({"id": "x", "choices": []}), 502, "upstream_error", 3),
    "first event an error": (lambda f, s: f.stream(f.event(ERROR)), 502, "upstream_error", 3),
    "role, then an error": (lambda f, s: f.stream(f.ROLE + f.event(ERROR)), 502, "upstream_error", 3),
    "role, then reset": (lambda f, s: f.stream(f.ROLE, ending="reset"), 502, "upstream_error", 3),
    "role, then silence": (lambda f, s: f.stream(f.ROLE, ending="hang"), 504, "timeout", None),
    "malformed first event": (lambda f, s: f.stream(b"data: {nonsense\n\n"), 502, "upstream_error", 3),
    "empty stream": (lambda f, s: f.stream(b""), 502, "upstream_error", 3),
    "only [DONE]": (lambda f, s: f.stream(f.DONE), 502, "upstream_error", 3),
    "JSON in place of a stream, or the other way": (
        lambda f, s: f.reply(f.completion("x")) if s else f.stream(f.words("x")),
        502,
        "upstream_error",
        3,
    ),
}


@pytest.mark.parametrize("streamed", [True, False], ids=["SSE", "JSON"])
@pytest.mark.parametrize("name", BEFORE)
def test_a_fault_before_content(gateway, upstream, fake, name, streamed):
    make, status, outcome, calls = BEFORE[name]
    upstream.script("m-alpha", make(fake, streamed))
    began = time.monotonic()
    answer = gateway.chat("x", model="alpha", stream=streamed)
    took = time.monotonic() - began
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert answer.headers["x-pointsman-worker"] == "alpha"
    assert ("retry-after" in answer.headers) == (status == 429)
    record = gateway.record(answer)
    assert record["outcome"]["status"] == outcome
    assert record["outcome"]["http_status"] == status
    assert record["outcome"]["calls"] == len(record["calls"]) == len(upstream.calls)
    if calls is not None:
        assert len(upstream.calls) == calls
    if name == "429 in seconds":
        arrived = [call.arrived for call in upstream.calls]
        assert all(later - earlier >= 0.1 for earlier, later in itertools.pairwise(arrived))
    assert took < 10  # what the workers ask for, or keep silent, is far longer


@pytest.mark.parametrize("streamed", [True, False], ids=["SSE", "JSON"])
@pytest.mark.parametrize("name", [n for n in BEFORE if n != "400" and n != "hang"])
def test_a_fault_before_content_goes_to_the_next_worker(gateway, upstream, fake, name, streamed):
    upstream.script("m-alpha", BEFORE[name][0](fake, streamed))
    upstream.script("m-beta", fake.text("from beta"))
    answer = gateway.chat("x", stream=streamed)
    if name == "role, then silence" and not streamed:
        assert answer.status_code == 504  # a JSON answer has the whole time
        return
    assert answer.status_code == 200
    assert answer.headers["x-pointsman-worker"] == "beta"
    record = gateway.record(answer)
    assert record["decision"]["chosen"] == "alpha" and record["decision"]["propensity"] == 1
    assert record["outcome"]["status"] == "ok" and record["outcome"]["worker"] == "beta"
    assert [call["worker"] for call in record["calls"]] == ["alpha", "beta"]
    assert len(upstream.calls) == 2


AFTER = {
    "reset": (lambda f: f.stream(f.event(f.delta(content="so")), ending="reset"), "connect"),
    "cut": (lambda f: f.stream(f.event(f.delta(content="so")), ending="cut"), "connect"),
    "silence": (lambda f: f.stream(f.event(f.delta(content="so")), ending="hang"), "timeout"),
    "error event": (lambda f: f.stream(f.event(f.delta(content="so")) + f.event(ERROR)), "server"),
    "malformed event": (lambda f: f.stream(f.event(f.delta(content="so")) + b"data: {oops\n\n"), "malformed"),
    "closed early": (lambda f: f.stream(f.event(f.delta(content="so"))), "truncated"),
}


@pytest.mark.parametrize("name", AFTER)
def test_a_fault_after_content_ends_the_stream_with_an_error(gateway, upstream, running, fake, name):
    make, fault = AFTER[name]
    upstream.script("m-alpha", make(fake))
    with gateway.streaming() as answer:
        data = running.events(answer)
    assert answer.status_code == 200
    assert json.loads(data[0])["choices"][0]["delta"]["content"] == "so"
    assert json.loads(data[-1])["error"]["code"] == fault
    assert "[DONE]" not in data and len(data) == 2
    assert len(upstream.calls) == 1
    record = gateway.record(answer)
    assert record["outcome"]["status"] == "truncated"
    if name == "silence":
        assert record["outcome"]["reason"] == "timeout: the gap limit passed in the middle of the answer"
    call = record["calls"][0]
    assert (call["status"], call["fault"], call["completion"]) == ("truncated", fault, "so")
    assert call["usage_estimated"] is True and call["output_tokens"] == 1


def test_a_json_reply_that_is_cut_is_retried(gateway, upstream, fake):
    async def cut(call):
        await call.head(200, {"content-type": "application/json", "content-length": "1000"})
        call.writer.write(b'{"id":')
        await call.writer.drain()
        call.writer.close()

    upstream.script("m-alpha", cut, fake.text("whole"))
    answer = gateway.chat("x", model="alpha")
    assert answer.json()["choices"][0]["message"]["content"] == "whole"
    assert [call["fault"] for call in gateway.record(answer)["calls"]] == ["connect", None]


def test_a_refused_connection(make_gateway, upstream):
    gateway = make_gateway(
        "[retries]\nbackoff = 0.01\n[router]\nchain = ['default']\n",
        '[[workers]]\nname = "gone"\ndescription = "x"\nmodel = "m"\nbase_url = "http://127.0.0.1:1"\n',
    )
    answer = gateway.chat("x")
    assert answer.status_code == 502
    assert answer.json()["error"]["code"] == "connect"
    assert gateway.record(answer)["outcome"]["calls"] == 3
    gateway.close()


def test_fallbacks_can_be_forbidden(gateway, upstream, fake):
    upstream.script("m-alpha", fake.reply(ERROR, 401))
    answer = gateway.chat("x", metadata={"pointsman": {"disable_fallbacks": True}})
    assert answer.status_code == 502
    assert len(upstream.calls) == 1
    with gateway.streaming(metadata={"pointsman": {"disable_fallbacks": True}}) as streamed:
        assert streamed.status_code == 502


def test_the_fallback_gets_the_same_body(gateway, upstream, fake):
    upstream.script("m-alpha", fake.reply(ERROR, 500))
    schema = {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}}}
    answer = gateway.chat("x", response_format=schema, tool_choice="none", tools=[{"type": "function"}], foo=1.50)
    assert answer.status_code == 200
    first, second = upstream.calls
    assert second.body == first.body.replace(b'"m-alpha"', b'"m-beta"')


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "The input token count (40000) exceeds the maximum number of tokens allowed (32000).",
        "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
        "the request exceeds the available context size, try increasing it",
    ],
)
def test_a_prompt_that_does_not_fit_goes_to_a_larger_window_only(gateway, upstream, fake, message):
    upstream.script("m-alpha", fake.reply({"error": {"message": message}}, 400))
    answer = gateway.chat("x")
    assert answer.headers["x-pointsman-worker"] == "beta"
    assert [call["fault"] for call in gateway.record(answer)["calls"]] == ["context_exceeded", None]
    upstream.script("m-beta", fake.reply({"error": {"message": message}}, 400))
    refused = gateway.chat("x")
    assert refused.status_code == 400
    assert refused.json()["error"]["code"] == "context_length_exceeded"
    assert upstream.of("m-gamma") == []
    assert gateway.record(refused)["outcome"]["status"] == "rejected"
    assert gateway.state.breaker.open_workers() == []


def test_the_substitutes_trouble_does_not_hide_the_first_one(gateway, upstream, fake):
    upstream.script("m-alpha", fake.reply(ERROR, 500))
    upstream.script("m-beta", fake.reply({"error": {"message": "prompt is too long"}}, 400))
    answer = gateway.chat("x")
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "server")


def test_all_at_their_limit_says_when_the_first_is_free(gateway, upstream, fake):
    for model, seconds in (("m-alpha", 40), ("m-beta", 20), ("m-gamma", 30)):
        upstream.script(model, fake.reply(LIMITED, 429, {"retry-after": str(seconds)}))
    answer = gateway.chat("x")
    assert answer.status_code == 429
    assert 19 <= int(answer.headers["retry-after"]) <= 20
    assert len(upstream.calls) == 3


def test_a_deadline_of_the_client_is_kept(gateway, upstream, fake):
    upstream.script("m-alpha", fake.hang)
    for streamed in (True, False):
        began = time.monotonic()
        answer = gateway.chat("x", headers={"x-pointsman-deadline": "0.3"}, stream=streamed)
        assert answer.status_code == 504
        assert time.monotonic() - began < 1.4  # the configured limit is 1.5
    for call in upstream.calls:
        assert upstream.wait_left(call) - call.arrived < 1.4


def test_the_total_limit_ends_a_stream_that_goes_on_and_on(gateway, upstream, fake):
    upstream.script("m-alpha", fake.stream([fake.event(fake.delta(content="y"))] * 200, pause=0.05))
    answer = gateway.chat("x", stream=True)
    assert answer.text.count('"y"') < 35 and "[DONE]" not in answer.text
    outcome = gateway.record(answer)["outcome"]
    assert (outcome["status"], outcome["reason"]) == (
        "truncated",
        "timeout: the total limit passed in the middle of the answer",
    )
    assert gateway.state.breaker.healthy("alpha")


def test_connections_are_used_again_after_errors(gateway, upstream, fake):
    upstream.script("m-alpha", fake.reply(ERROR, 400), fake.text("x"), fake.reply(ERROR, 400), fake.text("y"))
    for _ in range(4):
        gateway.chat("x", model="alpha")
    for streamed in (True, False, True):
        gateway.chat("x", model="alpha", stream=streamed)
    assert len({call.port for call in upstream.calls}) == 1
