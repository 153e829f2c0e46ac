"""A worker behind LiteLLM's SDK beside a plain one: routed, logged, priced and fallen back from like any other."""

from __future__ import annotations

from decimal import Decimal

import pytest

SETTINGS = """
[router]
chain = ["rule", "default"]
default = "sdk"
[[router.rules]]
worker = "plain"
words = ["plain"]
[retries]
attempts = 2
backoff = 0.01
[breaker]
failures = 100000
[exploration]
epsilon = 0
"""
WORKERS = """
[[workers]]
name = "sdk"
description = "Behind LiteLLM's SDK."
model = "openai/m-sdk"
base_url = "{url}"
api_key_env = "ALPHA_KEY"
price = {{ input = 2, output = 10 }}
capabilities = ["tools", "images", "embeddings"]
quirks = {{ api = "litellm" }}
[[workers]]
name = "plain"
description = "Speaks chat completions."
model = "m-plain"
base_url = "{url}"
capabilities = ["tools", "images"]
"""


@pytest.fixture(scope="module")
def gateway(make_gateway):
    return make_gateway(SETTINGS, WORKERS)


def test_an_answer_and_its_row(gateway, upstream):
    answer = gateway.chat("x")
    assert answer.status_code == 200 and answer.headers["x-pointsman-worker"] == "sdk"
    assert answer.json()["choices"][0]["message"]["content"] == "ok"
    assert upstream.calls[0].headers["authorization"] == "Bearer canary-worker-key-7Q"
    call = gateway.record(answer)["calls"][0]
    assert (call["worker"], call["status"], call["completion"]) == ("sdk", "ok", "ok")
    assert (call["input_tokens"], call["output_tokens"], Decimal(call["cost"])) == (10, 5, Decimal("0.00007"))


def test_a_stream_to_the_client(gateway, upstream, running, fake):
    upstream.script("m-sdk", fake.stream(fake.words("he", "llo")))
    with gateway.streaming() as answer:
        assert running.contents(answer) == "hello"
    assert gateway.record(answer)["outcome"]["status"] == "ok"


def test_a_fault_goes_to_the_plain_worker(gateway, upstream, fake):
    upstream.script("m-sdk", fake.reply({"error": {"message": "canary-worker-key-7Q is tired"}}, 500))
    answer = gateway.chat("x")
    assert answer.headers["x-pointsman-worker"] == "plain"
    first = gateway.record(answer)["calls"][0]
    assert (first["fault"], first["http_status"]) == ("server", 500)
    assert "canary" not in first["error"]
    assert len(upstream.calls) == 2


def test_a_stream_that_is_cut_is_truncated(gateway, upstream, running, fake):
    upstream.script("m-sdk", fake.stream([fake.ROLE, fake.event(fake.delta(content="half"))]))
    with gateway.streaming() as answer:
        events = running.events(answer)
    assert "error" in events[-1] and "[DONE]" not in events
    assert gateway.record(answer)["outcome"]["status"] == "truncated"


def test_what_the_sdk_is_not_given_goes_to_a_worker_that_takes_it(gateway, upstream):
    answer = gateway.chat("x", chat_template_kwargs={"thinking": True})
    assert answer.status_code == 200 and answer.headers["x-pointsman-worker"] == "plain"
    record = gateway.record(answer)
    assert record["decision"]["chosen"] == "sdk"
    assert [call["worker"] for call in record["calls"]] == ["plain"]
    assert [call.json["model"] for call in upstream.calls] == ["m-plain"]


def test_where_nobody_takes_it_no_call_is_on_record(gateway, upstream):
    answer = gateway.chat("x", model="sdk", mock_response="not asked")
    assert answer.status_code == 400
    assert "mock_response: not a field that is passed through LiteLLM's SDK" in answer.json()["error"]["message"]
    record = gateway.record(answer)
    assert record["calls"] == [] and record["outcome"]["status"] == "rejected" and record["outcome"]["calls"] == 0
    assert upstream.calls == []


def test_it_makes_no_embeddings(gateway):
    answer = gateway.client.post("/v1/embeddings", json={"model": "pointsman", "input": "x"})
    assert answer.status_code == 400
    assert "sdk: no_embeddings" in answer.json()["error"]["message"]
