"""`/v1/messages` through the whole gateway: Anthropic's SDK, Claude Code's traffic, and what is on record of it."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import anthropic
import pytest

USER = [{"role": "user", "content": "hello"}]
TOOLS = [{"name": "weather", "description": "W", "input_schema": {"type": "object", "properties": {}}}]
CLAUDE_CODE = {
    "anthropic-version": "2023-06-01",
    "anthropic-beta": "claude-code-20250219,oauth-2025-04-20,interleaved-thinking-2025-05-14",
    "authorization": "Bearer sk-ant-oat01-the-clients-own-login",
    "x-app": "cli",
}


def _traffic():
    file = Path(__file__).parent.parent / "support" / "anthropic_traffic.py"
    spec = importlib.util.spec_from_file_location("pointsman_tests_anthropic_traffic", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def client(gateway):
    with anthropic.Anthropic(base_url=gateway.url, api_key="anything", max_retries=0) as made:
        yield made


def calls_weather(fake):
    call = {"id": "toolu_9", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Köln"}'}}

    async def behave(upstream_call):
        if upstream_call.json.get("stream"):
            event = fake.event(fake.delta(tool_calls=[{"index": 0, **call}]))
            done = fake.event(fake.delta(finish="tool_calls"))
            await fake.stream([fake.ROLE, event, done, fake.event(fake.usage_chunk()), fake.DONE])(upstream_call)
        else:
            await fake.reply(fake.completion(None, message={"tool_calls": [call]}, finish="tool_calls"))(upstream_call)

    return behave


def test_a_message_and_its_rows(gateway, client, upstream, fake):
    upstream.script("m-alpha", fake.text("hello 🌍"))
    raw = client.messages.with_raw_response.create(
        model="pointsman", max_tokens=50, system="Be brief.", messages=USER, metadata={"user_id": "u"}
    )
    message = raw.parse()
    assert (message.content[0].text, message.stop_reason) == ("hello 🌍", "end_turn")
    assert (message.usage.input_tokens, message.usage.output_tokens) == (10, 5)
    assert raw.headers["x-pointsman-worker"] == "alpha"
    sent = upstream.calls[0]
    assert sent.path == "/v1/chat/completions" and "x-api-key" not in sent.headers
    assert sent.headers["authorization"] == "Bearer canary-worker-key-7Q"
    assert sent.json["messages"][0] == {"role": "system", "content": "Be brief."}
    assert "anthropic" not in sent.json and sent.json["max_tokens"] == 50
    record = gateway.record(raw.headers["x-pointsman-decision-id"])
    assert (record["request"]["surface"], record["request"]["text"]) == ("messages", "hello")
    assert record["request"]["body"]["system"] == "Be brief." and record["outcome"]["status"] == "ok"


def test_a_stream(client, upstream, fake):
    upstream.script("m-alpha", fake.text("héllo"))
    with client.messages.stream(model="pointsman", max_tokens=50, messages=USER) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_message()
    assert final.content[0].text == "héllo" and final.stop_reason == "end_turn"
    assert (final.usage.input_tokens, final.usage.output_tokens) == (10, 5)
    assert kinds[0] == "message_start" and kinds[-1] == "message_stop"


@pytest.mark.parametrize("streamed", [False, True], ids=["JSON", "SSE"])
def test_a_tool_loop_stays_with_its_worker(gateway, client, upstream, fake, streamed):
    upstream.script("m-beta", calls_weather(fake), fake.text("rain"))
    messages = [{"role": "user", "content": "beta, what is the weather?"}]
    shared = {"model": "pointsman", "max_tokens": 50, "tools": TOOLS}
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    decisions = []
    for _ in range(2):
        if streamed:
            with client.messages.stream(messages=messages, **shared) as stream:
                final = stream.get_final_message()
                decisions.append(stream.response.headers["x-pointsman-decision-id"])
        else:
            raw = client.messages.with_raw_response.create(messages=messages, **shared)
            final = raw.parse()
            decisions.append(raw.headers["x-pointsman-decision-id"])
        messages.append({"role": "assistant", "content": [block.to_dict() for block in final.content]})
        for block in final.content:
            if block.type == "tool_use":
                assert block.input == {"city": "Köln"} and final.stop_reason == "tool_use"
                result = {"type": "tool_result", "tool_use_id": block.id, "content": "rain"}
                messages.append({"role": "user", "content": [result]})
    assert final.content[0].text == "rain"
    first, second = (gateway.record(decision) for decision in decisions)
    assert (first["decision"]["forced"], second["decision"]["forced"]) == (None, "sticky")
    assert first["decision"]["episode_id"] == second["decision"]["episode_id"]
    shown = {"type": "tool_result", "tool_use_id": "toolu_9", "content": [image]}
    again = client.messages.with_raw_response.create(
        messages=[*messages[:2], {"role": "user", "content": [shown]}], **{**shared, "model": "alpha"}
    )
    assert again.headers["x-pointsman-episode-id"] == first["decision"]["episode_id"]


def test_count_tokens_asks_no_worker(client, upstream):
    counted = client.messages.count_tokens(model="pointsman", messages=[{"role": "user", "content": "x" * 4000}])
    assert counted.input_tokens >= 1000
    assert upstream.calls == []
    with pytest.raises(anthropic.BadRequestError, match="messages: expected a list"):
        client.messages.count_tokens(model="pointsman", messages=[])


def test_claude_codes_traffic(gateway, upstream, fake):
    """Its own login beside our key, `?beta=true`, thinking, many blocks; the answer streams in Anthropic's events."""
    body = {**_traffic().claude_code_request(), "model": "pointsman"}
    upstream.script("m-alpha", fake.text("It is the Makefile."))
    key = gateway.key(project="coders", scopes=("serve",))
    answer = gateway.client.post("/v1/messages?beta=true", json=body, headers={**CLAUDE_CODE, "x-api-key": key})
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/event-stream")
    names = [line[7:] for line in answer.text.split("\n") if line.startswith("event: ")]
    assert names[0] == "message_start" and names[-2:] == ["message_delta", "message_stop"]
    sent = upstream.calls[0]
    assert "sk-ant-oat01" not in str(sent.headers) + sent.body.decode() and key not in sent.body.decode()
    assert b"billing-header" not in sent.body and b"thinking" not in sent.body
    record = gateway.record(answer)
    assert record["request"]["text"] == "Why does the build fail?"
    assert record["request"]["key_id"] is not None and record["request"]["surface"] == "messages"
    counted = gateway.client.post(
        "/v1/messages/count_tokens?beta=true", json={"model": "x", "messages": USER}, headers={"x-api-key": key}
    )
    assert counted.json()["input_tokens"] >= 1


def test_refusals_are_in_anthropics_shape_and_on_record(gateway, client, upstream):
    with pytest.raises(anthropic.BadRequestError) as refused:
        client.messages.create(model="pointsman", max_tokens=5, messages=[])
    assert refused.value.body["type"] == "error"
    assert refused.value.body["error"]["type"] == "invalid_request_error"
    record = gateway.record(refused.value.response.headers["x-pointsman-decision-id"])
    assert (record["request"]["surface"], record["outcome"]["status"]) == ("messages", "rejected")
    with pytest.raises(anthropic.NotFoundError, match="does not exist here"):
        client.messages.create(model="claude-opus-9", max_tokens=5, messages=USER)
    with pytest.raises(anthropic.AuthenticationError):
        client.with_options(api_key="pm_wrong").messages.create(model="pointsman", max_tokens=5, messages=USER)
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        client.messages.create(model="pointsman", max_tokens=5, messages=[{"role": "user", "content": "x" * 900_000}])
    for method, path in (("GET", "/v1/messages"), ("POST", "/v1/messages/batches")):
        answer = gateway.client.request(method, path, json={})
        assert answer.status_code in (404, 405) and answer.json()["type"] == "error"
    assert upstream.calls == []


def test_an_address_is_refused_by_the_clients_own_name_for_it(gateway):
    body = {"model": "pointsman", "max_tokens": 5, "messages": USER, "base_url": "http://10.0.0.1"}
    answer = gateway.client.post("/v1/messages", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith("base_url: a request may not set an upstream's address")


def test_a_request_may_forbid_that_its_text_is_kept(gateway, upstream):
    body = {"model": "pointsman", "max_tokens": 5, "messages": USER, "store": False}
    record = gateway.record(gateway.client.post("/v1/messages", json=body))
    assert record["request"]["text"] is None and record["request"]["body"] is None
    assert record["request"]["learn"] is False and record["calls"][0]["completion"] is None
    assert "store" not in upstream.calls[0].json or upstream.calls[0].json["store"] is False


def test_feedback_by_the_messages_id(gateway, client, upstream, fake):
    upstream.script("m-alpha", fake.reply(fake.completion("42", id="chatcmpl-77")))
    message = client.messages.create(model="pointsman", max_tokens=5, messages=USER)
    assert message.id == "msg_chatcmpl-77"
    for name in (message.id, "chatcmpl-77"):
        answer = gateway.client.post("/v1/feedback", json={"completion_id": name, "metric": "correct", "value": True})
        assert answer.status_code == 200 and answer.json()["joined"] is True
        decision = gateway.client.get(f"/v1/decisions/{name}").json()["decision"]["id"]
        assert decision == answer.json()["decision_id"]
    assert gateway.client.get("/v1/decisions/msg_nobody").status_code == 404


def test_json_of_a_message_is_what_was_sent(gateway, upstream, fake):
    upstream.script("m-alpha", fake.reply(fake.completion("so", id="chatcmpl-1")))
    answer = gateway.client.post("/v1/messages", json={"model": "pointsman", "max_tokens": 5, "messages": USER})
    assert json.loads(answer.content)["content"] == [{"type": "text", "text": "so"}]
    assert int(answer.headers["content-length"]) == len(answer.content)
