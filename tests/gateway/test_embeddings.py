"""`/v1/embeddings`: passed through to the one worker that is meant, on record like every other call."""

from __future__ import annotations

import json

import openai
import pytest

SETTINGS = """
[router]
chain = ["default"]
default = "chat"
[exploration]
epsilon = 0
[timeouts]
total = 0.8
[retries]
attempts = 3
max_retry_after = 0.3
backoff = 0.01
[breaker]
failures = 2
"""
WORKERS = """
[[workers]]
name = "chat"
description = "A chat model."
model = "m-chat"
base_url = "{url}"
[[workers]]
name = "embed"
description = "Makes embeddings."
model = "m-embed"
base_url = "{url}"
api_key_env = "ALPHA_KEY"
price = {{ input = 2, output = 10 }}
context_window = 20
capabilities = ["embeddings"]
[[workers]]
name = "both"
description = "Does both."
model = "m-both"
base_url = "{url}"
capabilities = ["embeddings", "tools"]
"""
ERROR = {"error": {"message": "it broke", "type": "server_error"}}


@pytest.fixture(scope="module")
def gateway(make_gateway):
    return make_gateway(SETTINGS, WORKERS)


@pytest.fixture(autouse=True)
def all_well(gateway):
    for name in ("embed", "both"):
        gateway.state.breaker.succeeded(name)


def embed(gateway, given="x", **fields):
    return gateway.client.post("/v1/embeddings", json={"model": "pointsman", "input": given, **fields})


def test_openais_sdk_and_the_rows(gateway, upstream):
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="anything", max_retries=0) as client:
        raw = client.embeddings.with_raw_response.create(
            model="pointsman", input=["one text", "another"], encoding_format="float", dimensions=2
        )
    made = raw.parse()
    assert [item.embedding for item in made.data] == [[0.5, 0], [0.5, 1]]
    assert raw.headers["x-pointsman-worker"] == "embed" and raw.headers["x-pointsman-propensity"] == "1"
    sent = upstream.calls[0]
    assert sent.path == "/v1/embeddings" and sent.headers["authorization"] == "Bearer canary-worker-key-7Q"
    assert sent.json == {
        "model": "m-embed",
        "input": ["one text", "another"],
        "encoding_format": "float",
        "dimensions": 2,
    }
    record = gateway.record(raw.headers["x-pointsman-decision-id"])
    assert (record["request"]["surface"], record["request"]["text"]) == ("embeddings", "one text\nanother")
    assert record["request"]["learn"] is False
    decision = record["decision"]
    assert (decision["kind"], decision["forced"], decision["probabilities"]) == ("route", "only_one", {"embed": 1})
    assert decision["eligible"] == {"chat": "no_embeddings", "embed": None, "both": None}
    call = record["calls"][0]
    assert (call["input_tokens"], call["output_tokens"], call["usage_estimated"]) == (14, 0, False)
    assert float(call["cost"]) == 14 * 2 / 1e6 and call["completion"] is None
    assert (call["provider_model"], call["http_status"]) == ("embedder", 200)
    outcome = record["outcome"]
    assert (outcome["status"], outcome["reason"], outcome["calls"]) == ("ok", None, 1)


def test_a_worker_by_name(gateway, upstream):
    answer = embed(gateway, model="both")
    assert answer.headers["x-pointsman-worker"] == "both"
    assert gateway.record(answer)["decision"]["forced"] == "direct"
    refused = embed(gateway, model="chat")
    assert refused.status_code == 400 and "chat: no_embeddings" in refused.json()["error"]["message"]
    assert embed(gateway, model="nobody").status_code == 404


def test_chat_does_not_go_to_a_worker_that_only_embeds(gateway, upstream):
    answer = gateway.chat("x")
    assert gateway.record(answer)["decision"]["eligible"] == {"chat": None, "embed": "embeddings_only", "both": None}
    assert gateway.chat("x", model="embed").status_code == 400
    assert gateway.chat("x", model="both").status_code == 200


@pytest.mark.parametrize("given", ["x", ["a", "b"], [1, 2, 3], [[1, 2], [3]]])
def test_every_shape_of_input_passes(gateway, upstream, given):
    assert embed(gateway, given).status_code == 200
    assert upstream.calls[0].json["input"] == given


@pytest.mark.parametrize(
    "given", [None, "", [], [""], [[]], ["a", 1], [1, "a"], {"a": 1}, 7, [True], [-1], [1.5], [None]]
)
def test_any_other_input_is_refused(gateway, upstream, given):
    answer = embed(gateway, given)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "input"
    assert gateway.record(answer)["request"]["surface"] == "embeddings"
    assert upstream.calls == []


def test_a_long_list_is_not_held_against_the_window_of_one(gateway, upstream):
    assert embed(gateway, ["a text of some length"] * 100).status_code == 200


def test_an_address_is_refused(gateway, upstream):
    answer = embed(gateway, api_base="http://10.0.0.1")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "field_not_allowed")


def test_bytes_pass_untouched(gateway, upstream, fake):
    body = b'{"data": [{"embedding": "AAAA"}],  "odd": 1.50, "usage": {"prompt_tokens": 3}}'
    upstream.script("m-embed", fake.reply(body))
    answer = embed(gateway, encoding_format="base64")
    assert answer.content == body
    assert gateway.record(answer)["calls"][0]["input_tokens"] == 3


def test_usage_is_estimated_where_there_is_none(gateway, upstream, fake):
    upstream.script("m-embed", fake.reply({"data": [{"embedding": [1]}]}))
    call = gateway.record(embed(gateway, "x" * 40))["calls"][0]
    assert (call["input_tokens"], call["output_tokens"], call["usage_estimated"]) == (10, 0, True)


FAULTS = {
    "500": (lambda f: f.reply(ERROR, 500), 502, "upstream_error", 3),
    "429": (lambda f: f.reply(ERROR, 429, {"retry-after": "30"}), 429, "upstream_error", 1),
    "400": (lambda f: f.reply(ERROR, 400), 400, "rejected", 1),
    "reset": (lambda f: f.reset, 502, "upstream_error", 3),
    "hang": (lambda f: f.hang, 504, "timeout", 1),
    "200 with an error": (lambda f: f.reply(ERROR), 502, "upstream_error", 3),
    "not JSON": (lambda f: f.reply(b"<html>"), 502, "upstream_error", 3),
    "no vectors": (lambda f: f.reply({"data": []}), 502, "upstream_error", 3),
    "a completion": (lambda f: f.reply(f.completion("x")), 502, "upstream_error", 3),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_never_lead_to_another_workers_vectors(gateway, upstream, fake, name):
    make, status, outcome, calls = FAULTS[name]
    upstream.script("m-embed", make(fake))
    answer = embed(gateway)
    assert answer.status_code == status and set(answer.json()["error"]) == {"message", "type", "param", "code"}
    record = gateway.record(answer)
    assert (record["outcome"]["status"], len(record["calls"])) == (outcome, calls)
    assert {call["worker"] for call in record["calls"]} == {"embed"} and upstream.of("m-both") == []
    again = embed(gateway)  # ill or not: the same worker
    assert again.headers["x-pointsman-worker"] == "embed"


def test_a_retry_answers(gateway, upstream, fake):
    upstream.script("m-embed", fake.reply(ERROR, 500), fake.vectors)
    answer = embed(gateway)
    assert answer.status_code == 200
    assert [call["status"] for call in gateway.record(answer)["calls"]] == ["error", "ok"]


def test_without_such_a_worker_it_is_refused(make_gateway, upstream):
    gateway = make_gateway()
    answer = embed(gateway)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "no_eligible_worker"
    gateway.close()


def test_an_embedding_begins_no_conversation(gateway, upstream):
    """A chat whose first message is the same text is not found in the embedding's episode."""
    first = embed(gateway, "the same text")
    turns = [{"role": "user", "content": "the same text"}, {"role": "assistant", "content": "y"}]
    chat = gateway.chat(messages=[*turns, {"role": "user", "content": "z"}])
    assert chat.headers["x-pointsman-episode-id"] != first.headers["x-pointsman-episode-id"]
    assert json.loads(upstream.calls[1].body)["model"] == "m-chat"
