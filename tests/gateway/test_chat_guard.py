"""Nothing in a request reaches an upstream's address or key (S1), and nothing secret gets out (S7)."""

from __future__ import annotations

import base64
import logging
import socket
import time

import pytest

NAMES = [
    "api_base",
    "base_url",
    "api_key",
    "apiKey",
    "api-base",
    "baseURL",
    "BASE_URL",
    "api_keys",
    "extra_headers",
    "extraHeaders",
    "headers",
    "proxy",
    "proxies",
    "http_proxy",
    "https_proxy",
    "endpoint",
    "azure_endpoint",
    "api_version",
    "organization_api_key",
    "default_headers",
    "authorization",
    "access_token",
    "aws_secret_access_key",
    "vertex_credentials",
    "custom_llm_provider",
    "url_override",
    "openai_api_base",
    "litellm_api_base",
    "ａｐｉ_base",
]


@pytest.fixture
def canary():
    """A listener that nothing may connect to."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        yield listener


def places(name, url):
    yield {name: url}
    yield {"metadata": {name: url}}
    yield {"extra_body": {"deep": [{"er": {name: url}}]}}
    yield {"unknown": [[{name: [url]}]]}
    yield {"metadata": {"litellm_params": f'{{"{name}": "{url}"}}'}}


@pytest.mark.parametrize("name", NAMES)
def test_a_field_that_names_an_upstream_is_refused_anywhere(gateway, running, upstream, canary, name):
    url = f"http://127.0.0.1:{canary.getsockname()[1]}/v1"
    for fields in places(name, url):
        answer = gateway.client.post("/v1/chat/completions", json={**running.WORDS, **fields})
        assert answer.status_code == 400, fields
        assert answer.json()["error"]["code"] == "field_not_allowed"
        assert name in answer.json()["error"]["param"]
    assert upstream.calls == []
    with pytest.raises(TimeoutError):
        canary.accept()


def test_headers_of_a_client_do_not_reach_the_worker(gateway, upstream, canary):
    url = f"http://127.0.0.1:{canary.getsockname()[1]}/v1"
    headers = {"x-worker-override": url, "x-api-base": url, "openai-organization": "x", "x-request-id": "a" * 10_000}
    assert gateway.chat("x", headers=headers).status_code == 200
    sent = upstream.calls[0].headers
    assert set(sent) == {"host", "content-type", "authorization", "content-length"}
    assert sent["authorization"] == "Bearer canary-worker-key-7Q"
    with pytest.raises(TimeoutError):
        canary.accept()


def test_the_same_words_in_the_conversation_are_content(gateway, upstream):
    schema = {"type": "object", "properties": {"api_key": {"type": "string"}, "headers": {"type": "object"}}}
    answer = gateway.chat(
        messages=[{"role": "user", "content": "x", "api_base": "y"}],
        tools=[{"type": "function", "function": {"name": "f", "parameters": schema}}],
        response_format={"type": "json_schema", "json_schema": {"name": "s", "schema": schema}},
        metadata={"ticket": "42", "url": "https://example.org/page"},
    )
    assert answer.status_code == 200, answer.text
    assert upstream.calls[0].json["metadata"] == {"ticket": "42", "url": "https://example.org/page"}


def test_a_redirect_is_not_followed(gateway, upstream, canary, fake):
    url = f"http://127.0.0.1:{canary.getsockname()[1]}/v1"
    upstream.script("m-alpha", fake.reply({}, 307, {"location": url}))
    upstream.script("m-beta", fake.text("from beta"))
    answer = gateway.chat("x")
    assert answer.headers["x-pointsman-worker"] == "beta"
    with pytest.raises(TimeoutError):
        canary.accept()


SECRET = "sk-CANARY0123456789abcdef"


def test_secrets_are_in_no_answer_row_journal_or_log(gateway, upstream, fake, caplog):
    caplog.set_level(logging.DEBUG)
    quoting = {"error": {"message": f"bad key canary-worker-key-7Q, {SECRET} at ?key=AIzaSyA1234567890abcdefghijk"}}
    answers = []
    for status in (400, 401, 403, 404, 429, 500):
        upstream.script("m-alpha", fake.reply(quoting, status))
        answers.append(gateway.chat("x", model="alpha", headers={"authorization": f"Bearer {SECRET}"}))
    upstream.script("m-alpha", fake.stream(fake.event(quoting)), fake.reply(quoting))
    with gateway.streaming(model="alpha") as answer:
        answer.read()
    answers.append(gateway.chat("x", headers={"authorization": f"Bearer pm_{SECRET}"}))
    assert answers[-1].status_code == 401
    answers.append(gateway.client.get("/v1/models", headers={"authorization": f"Basic {SECRET}"}))
    gateway.ship()
    rows = gateway.sql("SELECT row_to_json(c)::text FROM call c WHERE started_at > now() - interval '1 minute'")
    everything = [answer.content + str(answer.headers).encode() for answer in answers]
    everything += [row[0].encode() for row in rows] + [caplog.text.encode(), gateway.journal_bytes()]
    everything.append(gateway.client.get("/metrics").content)
    assert len(rows) >= 8
    for secret in (SECRET, "canary-worker-key-7Q", "AIzaSyA1234567890abcdefghijk"):
        for place in everything:
            assert secret.encode() not in place
            assert base64.b64encode(secret.encode()) not in place


@pytest.fixture(scope="module")
def redacting(make_gateway):
    more = "[log]\nredact = ['4[0-9]{15}', 'hunter2', '(?i)ssn-[0-9]+']\n"
    return make_gateway(more=more)


def test_what_is_redacted_never_reaches_the_journal(redacting, upstream, fake):
    secrets = ("4000123412341234", "hunter2", "SSN-12345")
    said = " and ".join(secrets)
    tool = {"id": "call_hunter2", "function": {"name": "hunter2", "arguments": f'{{"x": "{said}"}}'}}
    upstream.script("m-alpha", fake.reply(fake.completion(said, message={"reasoning": said, "tool_calls": [tool]})))
    answer = redacting.chat(
        said,
        user=said,
        number=4000123412341234,
        nested={"hunter2": [said, 1.5]},
        metadata={"pointsman": {"tags": ["hunter2"], "episode_id": "about SSN-12345"}},
    )
    assert answer.status_code == 200, answer.text
    assert upstream.calls[0].json["messages"][0]["content"] == said
    assert answer.json()["choices"][0]["message"]["content"] == said
    redacting.chat("x", model="hunter2")
    upstream.script("m-beta", fake.reply({"error": {"message": f"cannot do {said}"}}, 400))
    redacting.chat("beta")
    feedback = {"comment": said, "rater": "hunter2", "source": "hunter2", "demonstration": {"hunter2": said}}
    target = {"decision_id": answer.headers["x-pointsman-decision-id"]}
    assert redacting.client.post("/v1/feedback", json={**feedback, **target}).status_code == 200
    redacting.client.post("/v1/route", json={"model": "pointsman", "messages": [{"role": "user", "content": said}]})
    journal = redacting.journal_bytes()
    for secret in secrets:
        assert secret.encode() not in journal
    record = redacting.record(answer)
    assert record["request"]["text"] == "[redacted] and [redacted] and [redacted]"
    assert record["request"]["body"]["number"] == "[redacted]"
    assert record["calls"][0]["completion"] == "[redacted] and [redacted] and [redacted]"


def test_redaction_keeps_a_body_with_numbers_that_only_some_parsers_take(redacting, upstream):
    body = b'{"model":"pointsman","messages":[{"role":"user","content":"x"}],"big":%s,"huge":1e999}' % (b"5" * 4400)
    answer = redacting.post(body)
    assert answer.status_code == 200, answer.text
    stored = redacting.record(answer)["request"]["body"]
    assert stored["huge"] is None and set(stored) == {"model", "messages", "big", "huge"}


def test_store_false_stores_no_text_and_is_not_explored(make_gateway, upstream, fake):
    exploring = make_gateway("[router]\nchain = ['default']\n[exploration]\nepsilon = 1.0\nseed = 3\n")
    upstream.script("m-gamma", fake.text("a private answer"))
    answers = [exploring.chat("some private words", store=False) for _ in range(12)]
    upstream.script("m-gamma", fake.text("open"))
    explored = [exploring.chat("public words") for _ in range(12)]
    upstream.script("m-alpha", fake.reply({"error": {"message": "private words: yes"}}, 400))
    refused = exploring.chat("some private words", store=False, model="alpha")
    assert refused.status_code == 400
    for answer in [*answers, refused]:
        record = exploring.record(answer)
        assert record["request"]["body"] is None and record["request"]["text"] is None
        assert record["request"]["learn"] is False
        assert record["calls"][0]["completion"] is None
        assert record["decision"]["explored"] is False
        assert max(record["decision"]["probabilities"].values()) == 1
    assert b"private" not in exploring.journal_bytes()
    records = [exploring.record(answer) for answer in explored]
    assert all(record["decision"]["explored"] for record in records)
    assert len({record["decision"]["chosen"] for record in records}) == 3
    exploring.close()


def test_slow_bodies_are_bounded_and_do_not_hold_others_up(gateway, upstream):
    with socket.create_connection(("127.0.0.1", gateway.port)) as slow:
        slow.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
        slow.sendall(b"Content-Length: 1000\r\n\r\n{")
        began = time.monotonic()
        assert gateway.chat("x").status_code == 200
        assert time.monotonic() - began < 5
