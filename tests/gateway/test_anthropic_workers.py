"""Workers that speak Anthropic's API, behind every surface: what they are sent, what comes of their replies."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import anthropic
import openai
import pytest

SETTINGS = """
[router]
chain = ["rule", "default"]
default = "opus"
[[router.rules]]
worker = "plain"
words = ["plain"]
[timeouts]
connect = 1
first_token = 0.6
gap = 0.5
total = 1.5
[retries]
attempts = 2
backoff = 0.01
[breaker]
failures = 100000
[exploration]
epsilon = 0
seed = 1
"""
WORKERS = """
[[workers]]
name = "opus"
description = "Speaks Anthropic's API."
model = "claude-test"
base_url = "{url}"
api_key_env = "ALPHA_KEY"
price = {{ input = 2, cached_input = 1, output = 10 }}
capabilities = ["tools", "images", "json_schema", "reasoning", "logprobs", "audio"]
quirks = {{ api = "anthropic" }}
[[workers]]
name = "plain"
description = "Speaks chat completions."
model = "m-plain"
base_url = "{url}"
max_output_tokens = 50
capabilities = ["tools", "images", "json_schema", "reasoning", "logprobs", "audio"]
"""
USER = [{"role": "user", "content": "hello"}]
KEY = "canary-worker-key-7Q"
TOOLS = [{"name": "bash", "description": "B", "input_schema": {"type": "object", "properties": {}}}]
THOUGHT = {"type": "thinking", "thinking": "Let me see.", "signature": "sig-of-opus"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "make"}}


def _traffic():
    file = Path(__file__).parent.parent / "support" / "anthropic_traffic.py"
    spec = importlib.util.spec_from_file_location("pointsman_tests_anthropic_traffic", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TRAFFIC = _traffic()


@pytest.fixture(scope="module")
def gateway(make_gateway):
    return make_gateway(SETTINGS, WORKERS)


@pytest.fixture
def client(gateway):
    with anthropic.Anthropic(base_url=gateway.url, api_key="anything", max_retries=0) as made:
        yield made


@pytest.fixture
def chat(gateway):
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="anything", max_retries=0) as made:
        yield made


def says(fake, *blocks, stop="end_turn"):
    """An Anthropic reply of these blocks, as JSON or as a stream."""
    whole = TRAFFIC.message(list(blocks), stop)

    async def behave(call):
        if call.json.get("stream"):
            await fake.stream([b"event: x\ndata: " + data + b"\n\n" for data in TRAFFIC.stream_of(whole)])(call)
        else:
            await fake.reply(whole)(call)

    return behave


def text(content: str):
    return {"type": "text", "text": content}


@pytest.mark.parametrize("streamed", [False, True], ids=["JSON", "SSE"])
def test_a_chat_clients_request_and_the_rows(gateway, upstream, fake, streamed):
    upstream.script("claude-test", says(fake, text("héllo")))
    messages = [{"role": "system", "content": "Brief."}, *USER]
    options = {"stream_options": {"include_usage": True}} if streamed else {}
    answer = gateway.chat(messages=messages, stream=streamed, stop="END", **options)
    assert answer.status_code == 200, answer.text
    sent = upstream.calls[0]
    assert sent.path == "/v1/messages"
    assert sent.headers["x-api-key"] == KEY and "authorization" not in sent.headers
    assert sent.headers["anthropic-version"] == "2023-06-01" and "anthropic-beta" not in sent.headers
    assert sent.json["system"] == "Brief." and sent.json["messages"] == [{"role": "user", "content": [text("hello")]}]
    assert sent.json["max_tokens"] == 4096 and sent.json["stop_sequences"] == ["END"]
    record = gateway.record(answer)
    call = record["calls"][0]
    assert (call["completion"], call["completion_id"], call["finish_reason"]) == ("héllo", "msg_01XYZ", "stop")
    assert (call["input_tokens"], call["cached_tokens"], call["output_tokens"]) == (3211, 3000, 47)
    assert call["usage_estimated"] is False and call["provider_model"] == "claude-test"
    assert record["outcome"]["status"] == "ok"
    if streamed:
        lines = [line[6:] for line in answer.text.split("\n") if line.startswith("data: ")]
        chunks = [json.loads(line) for line in lines[:-1]]
        assert lines[-1] == "[DONE]" and chunks[-1]["usage"]["prompt_tokens"] == 3211
        said = [choice["delta"].get("content") for chunk in chunks for choice in chunk["choices"]]
        assert "".join(part for part in said if part) == "héllo"
    else:
        assert answer.json()["choices"][0]["message"]["content"] == "héllo"
        assert answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"] == 3000


def test_openais_sdk_runs_tools_on_it(chat, upstream, fake):
    upstream.script("claude-test", says(fake, text("I look."), CALL, stop="tool_use"), says(fake, text("done")))
    tool = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}
    with chat.chat.completions.stream(model="pointsman", messages=USER, tools=[tool]) as stream:
        message = stream.get_final_completion().choices[0].message
    assert message.content == "I look." and json.loads(message.tool_calls[0].function.arguments) == CALL["input"]
    turns = [*USER, message.to_dict(), {"role": "tool", "tool_call_id": "toolu_1", "content": "ok"}]
    answer = chat.chat.completions.create(model="pointsman", messages=turns, tools=[tool])
    assert answer.choices[0].message.content == "done"
    again = upstream.calls[1].json
    assert again["messages"][1]["content"] == [text("I look."), CALL]
    assert again["messages"][2]["content"][0]["tool_use_id"] == "toolu_1"


@pytest.mark.parametrize("streamed", [False, True], ids=["JSON", "SSE"])
def test_thinking_comes_back_to_its_maker_and_to_nobody_else(gateway, client, upstream, fake, streamed):
    upstream.script("claude-test", says(fake, THOUGHT, text("I look."), CALL, stop="tool_use"), says(fake, text("ok")))
    upstream.script("m-plain", fake.text("plain says"))
    shared = {
        "model": "pointsman",
        "max_tokens": 2000,
        "tools": TOOLS,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "extra_headers": {"anthropic-beta": "interleaved-thinking-2025-05-14,oauth-2025-04-20"},
    }
    if streamed:
        with client.messages.stream(messages=USER, **shared) as stream:
            first = stream.get_final_message()
    else:
        first = client.messages.create(messages=USER, **shared)
    thought = first.content[0]
    assert thought.thinking == "Let me see." and thought.signature.startswith("pm.")
    assert [block.type for block in first.content] == ["thinking", "text", "tool_use"]
    turns = [
        *USER,
        {"role": "assistant", "content": [block.to_dict() for block in first.content]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "exit 0"}]},
    ]
    raw = client.messages.with_raw_response.create(messages=turns, **shared)
    assert raw.headers["x-pointsman-worker"] == "opus"
    assert gateway.record(raw.headers["x-pointsman-decision-id"])["decision"]["forced"] == "sticky"
    back = upstream.calls[1]
    assert back.json["messages"][1]["content"] == [THOUGHT, text("I look."), CALL]
    assert back.json["thinking"] == shared["thinking"]
    assert back.headers["anthropic-beta"] == "interleaved-thinking-2025-05-14"
    asked = [*turns, {"role": "assistant", "content": "ok"}, {"role": "user", "content": "plain, go on"}]
    raw = client.messages.with_raw_response.create(messages=asked, **shared)
    assert raw.headers["x-pointsman-worker"] == "plain"
    crossed = upstream.calls[2]
    assert b"sig-of-opus" not in crossed.body and b"thinking" not in crossed.body
    assert crossed.json["reasoning_effort"] == "low"


def test_a_chat_clients_thinking_does_not_cross_either(gateway, upstream, fake):
    upstream.script("claude-test", says(fake, THOUGHT, text("ok")))
    message = gateway.chat("hello").json()["choices"][0]["message"]
    assert message["reasoning_content"] == "Let me see."
    assert message["thinking_blocks"][0]["signature"].startswith("pm.")
    turns = [*USER, message, {"role": "user", "content": "plain, go on"}]
    gateway.chat(messages=turns)
    gateway.chat(messages=turns, model="opus")
    plain, opus = upstream.calls[1:]
    assert b"sig-of-opus" not in plain.body
    assert opus.json["messages"][1]["content"] == [THOUGHT, text("ok")]


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ({"n": 2}, "no_n"),
        ({"logprobs": True}, "no_logprobs"),
        ({"functions": [{"name": "f"}]}, "no_functions"),
        (
            {"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "x"}}]}]},
            "no_audio",
        ),
    ],
)
def test_what_the_api_cannot_is_masked_before_routing(gateway, upstream, field, reason):
    answer = gateway.chat(**{"messages": USER, **field})
    assert answer.headers["x-pointsman-worker"] == "plain"
    assert gateway.record(answer)["decision"]["eligible"] == {"opus": reason, "plain": None}
    assert gateway.chat(**{"messages": USER, **field, "model": "opus"}).status_code == 400
    assert upstream.of("claude-test") == []


ERRORS = {
    "overloaded": (529, "overloaded_error", 502, "server", 2),
    "rate limit": (429, "rate_limit_error", 429, "rate_limited", 2),
    "bad request": (400, "invalid_request_error", 400, "bad_request", 1),
    "key": (401, "authentication_error", 502, "auth", 1),
}


@pytest.mark.parametrize("streamed", [False, True], ids=["JSON", "SSE"])
@pytest.mark.parametrize("name", ERRORS)
def test_its_errors_before_content(gateway, upstream, fake, name, streamed):
    status, kind, seen, fault, calls = ERRORS[name]
    said = {"type": "error", "error": {"type": kind, "message": f"no, says {KEY}"}}
    upstream.script("claude-test", fake.reply(said, status))
    answer = gateway.chat("x", model="opus", stream=streamed)
    assert answer.status_code == seen
    assert KEY not in answer.text
    record = gateway.record(answer)
    assert [call["fault"] for call in record["calls"]] == [fault] * calls
    assert all(KEY not in call["error"] for call in record["calls"])
    gateway.state.breaker.succeeded("opus")


@pytest.mark.parametrize("place", ["first event", "in the middle"])
def test_an_error_event(gateway, client, upstream, fake, place):
    error = fake.event({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    head = [fake.event(json.loads(data)) for data in TRAFFIC.stream_of(TRAFFIC.message([text("so far so good")]))][:4]
    upstream.script("claude-test", fake.stream([*head, error] if place == "in the middle" else [head[0], error]))
    if place == "first event":
        answer = gateway.chat("x", model="opus", stream=True)
        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "rate_limit_exceeded")
        assert len(upstream.calls) == 2
        return
    said = []
    with (
        pytest.raises(anthropic.APIStatusError) as raised,
        client.messages.stream(model="opus", max_tokens=5, messages=USER) as stream,
    ):
        decision = stream.response.headers["x-pointsman-decision-id"]
        for part in stream.text_stream:
            said.append(part)
    assert "".join(said) == "so far " and raised.value.body["error"]["type"] == "rate_limit_error"
    record = gateway.record(decision)
    assert record["outcome"]["status"] == "truncated" and record["calls"][0]["completion"] == "so far "


def test_a_stream_without_its_end_is_truncated(gateway, upstream, fake, running):
    head = [fake.event(json.loads(data)) for data in TRAFFIC.stream_of(TRAFFIC.message([text("so far so good")]))][:4]
    upstream.script("claude-test", fake.stream(head))
    answer = gateway.chat("x", model="opus", stream=True)
    assert json.loads(running.events(answer)[-1])["error"]["code"] == "truncated"
    assert gateway.record(answer)["outcome"]["status"] == "truncated"


def test_pings_keep_the_gap_from_passing(gateway, upstream, fake, running):
    events = [fake.event(json.loads(data)) for data in TRAFFIC.stream_of(TRAFFIC.message([text("so far so good")]))]
    ping = fake.event({"type": "ping"})
    upstream.script("claude-test", fake.stream([b"".join(events[:4]), *[ping] * 4, b"".join(events[4:])], pause=0.2))
    answer = gateway.chat("x", model="opus", stream=True)
    assert running.contents(answer) == "so far so good"
    assert answer.text.endswith("data: [DONE]\n\n")


def test_a_fallback_between_the_apis(gateway, upstream, fake):
    upstream.script("claude-test", fake.reply({"type": "error", "error": {"type": "api_error"}}, 500))
    upstream.script("m-plain", fake.text("from plain"))
    body = {"model": "pointsman", "max_tokens": 7, "messages": USER}
    answer = gateway.client.post("/v1/messages", json=body)
    assert answer.json()["content"] == [text("from plain")]
    assert answer.headers["x-pointsman-worker"] == "plain"
    assert [call["worker"] for call in gateway.record(answer)["calls"]] == ["opus", "plain"]


def test_a_chat_client_cannot_write_headers(gateway, upstream, fake):
    upstream.script("claude-test", says(fake, text("ok")))
    betas = ["good-1", "evil\r\nx-injected: 1", "UPPER", 7, "x" * 81]
    answer = gateway.chat("x", anthropic={"betas": betas}, model="opus")
    assert answer.status_code == 200
    assert upstream.calls[0].headers["anthropic-beta"] == "good-1" and "x-injected" not in upstream.calls[0].headers


def test_feedback_by_a_native_messages_id(gateway, client, upstream, fake):
    whole = {**TRAFFIC.message([text("ok")]), "id": "msg_01native"}
    upstream.script("claude-test", fake.reply(whole))
    message = client.messages.create(model="opus", max_tokens=5, messages=USER)
    assert message.id == "msg_01native"
    word = {"completion_id": message.id, "metric": "correct", "value": True}
    assert gateway.client.post("/v1/feedback", json=word).status_code == 200
