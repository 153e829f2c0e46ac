"""Workers behind LiteLLM's SDK: answers as chat completions, errors as our faults, nothing of its own let in."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import aclosing
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pointsman.config.load import load_text
from pointsman.errors import ConfigError, UpstreamError
from pointsman.pool import NO_ADDRESS, Pool, Worker
from pointsman.upstream.litellm_request import litellm_body
from pointsman.upstream.litellm_transport import LitellmTransport
from pointsman.upstream.outgoing import chat_call
from pointsman.upstream.reading import read_stream, read_whole
from pointsman.upstream.record import CallRecord

TOML = """
[[workers]]
name = "w"
description = "d"
model = "openai/m-x"
base_url = "{url}"
price = {{ input = 2, output = 10 }}
quirks = {{ api = "litellm" }}
"""
HELLO = {"model": "pointsman", "messages": [{"role": "user", "content": "hello"}]}


def _load(name: str) -> Any:
    file = Path(__file__).parent.parent / "support" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"pointsman_tests_{name}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


fake = _load("fake_upstream")


@pytest.fixture(scope="module")
def shared() -> Iterator[Any]:
    made = fake.Upstream()
    yield made
    made.close()


@pytest.fixture
def upstream(shared: Any) -> Any:
    shared.clear()
    return shared


@pytest.fixture(scope="module")
def transport() -> LitellmTransport:
    return LitellmTransport()


def worker_at(url: str) -> Worker:
    return Pool.of(load_text(TOML.format(url=url))).workers[0]


def raw(fields: dict[str, Any]) -> dict[str, msgspec.Raw]:
    return {name: msgspec.Raw(json.dumps(value).encode()) for name, value in fields.items()}


async def ask(
    transport: LitellmTransport, upstream: Any, *, stream: bool = False, key: str = "sk-CANARY0123456789", **fields: Any
) -> CallRecord:
    """One call, read to its end."""
    worker = worker_at(upstream.url)
    record = CallRecord.begin(worker, worker.endpoints[0], 1)
    outgoing = chat_call(raw({**HELLO, "stream": stream, **fields}), worker, stream=stream)
    url = worker.endpoints[0].base_url + outgoing.path
    reply = await transport.post(url, {"authorization": f"Bearer {key}"}, outgoing.body, 2.0)
    if not stream:
        answer = await read_whole(worker, record, reply, outgoing)
        record.body = answer.body  # type: ignore[attr-defined]
        return record
    answer = await read_stream(worker, record, reply, outgoing)
    record.events = list(answer.head)  # type: ignore[attr-defined]
    assert answer.source is not None
    async with aclosing(answer.source) as source:
        async for event in source:
            record.events.append(event)  # type: ignore[attr-defined]
    record.done = answer.done  # type: ignore[attr-defined]
    return record


async def test_a_whole_answer(transport, upstream):
    usage = {"prompt_tokens": 17, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 7}}
    upstream.script("m-x", fake.reply(fake.completion("hi", usage=usage)))
    record = await ask(transport, upstream, temperature=0.5, seed=7, user=None)
    assert (record.seen.completion, record.seen.finish_reason, record.seen.completion_id) == (
        "hi",
        "stop",
        "chatcmpl-1",
    )
    assert (record.seen.usage.input, record.seen.usage.output, record.seen.usage.cached) == (17, 5, 7)
    call = upstream.calls[0]
    assert call.headers["authorization"] == "Bearer sk-CANARY0123456789"
    assert call.json == {"model": "m-x", "messages": HELLO["messages"], "temperature": 0.5, "seed": 7}
    body = json.loads(record.body)
    assert body["object"] == "chat.completion" and body["choices"][0]["message"]["content"] == "hi"


async def test_the_price_is_ours(transport, upstream):
    """`openai/gpt-4o` has a price in the SDK's own map; the worker's declared price is charged."""
    upstream.script("gpt-4o", fake.reply(fake.completion("x", usage={"prompt_tokens": 1000, "completion_tokens": 100})))
    toml = TOML.format(url=upstream.url).replace("openai/m-x", "openai/gpt-4o")
    worker = Pool.of(load_text(toml)).workers[0]
    record = CallRecord.begin(worker, worker.endpoints[0], 1)
    outgoing = chat_call(raw(HELLO), worker, stream=False)
    reply = await transport.post(upstream.url, {"authorization": "Bearer k"}, outgoing.body, 2.0)
    await read_whole(worker, record, reply, outgoing)
    record.settle_usage(0)
    assert record.cost == Decimal("0.003")


async def test_a_stream(transport, upstream):
    upstream.script("m-x", fake.stream(fake.words("he", "l🌍", "lo")))
    record = await ask(transport, upstream, stream=True)
    assert (record.seen.completion, record.seen.finish_reason, record.done) == ("hel🌍lo", "stop", True)
    assert (record.seen.usage.input, record.seen.usage.output) == (10, 5)
    assert upstream.calls[0].json["stream_options"] == {"include_usage": True}
    assert all(event.data.startswith(b"data: {") and event.data.endswith(b"\n\n") for event in record.events)


async def test_tool_calls(transport, upstream):
    tool = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'}}
    upstream.script("m-x", fake.reply(fake.completion(None, message={"tool_calls": [tool]}, finish="tool_calls")))
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]
    record = await ask(transport, upstream, tools=tools)
    assert record.seen.tool_calls == [tool]
    assert json.loads(record.body)["choices"][0]["message"]["content"] is None
    deltas = [
        fake.ROLE,
        fake.event(fake.delta(tool_calls=[{"index": 0, **tool, "function": {"name": "get_weather", "arguments": ""}}])),
        fake.event(fake.delta(tool_calls=[{"index": 0, "function": {"arguments": '{"city":"Oslo"}'}}])),
        fake.event(fake.delta(finish="tool_calls")),
        fake.DONE,
    ]
    upstream.script("m-x", fake.stream(deltas))
    record = await ask(transport, upstream, stream=True, tools=tools)
    assert record.seen.tool_calls == [tool] and record.seen.finish_reason == "tool_calls"


FAULTS = {
    "500": (fake.reply({"error": {"message": "oh"}}, 500), "server", 500),
    "503": (fake.reply({"error": {"message": "oh"}}, 503), "server", 503),
    "429": (fake.reply({"error": {"message": "slow"}}, 429, {"retry-after": "7"}), "rate_limited", 429),
    "401": (fake.reply({"error": {"message": "bad key sk-CANARY0123456789"}}, 401), "auth", 401),
    "403": (fake.reply({"error": {"message": "no"}}, 403), "auth", 403),
    "400": (fake.reply({"error": {"message": "no such role"}}, 400), "bad_request", 400),
    "422": (fake.reply({"error": {"message": "no"}}, 422), "bad_request", 422),
    "404": (fake.reply({"error": {"message": "no"}}, 404), "server", 404),
    "window": (
        fake.reply({"error": {"message": "maximum context length is 5", "code": "context_length_exceeded"}}, 400),
        "context_exceeded",
        400,
    ),
    "reset": (fake.reset, "connect", None),
}


@pytest.mark.parametrize("stream", [False, True], ids=["json", "sse"])
@pytest.mark.parametrize("name", FAULTS)
async def test_errors_are_our_faults_after_one_call(transport, upstream, name, stream):
    behaviour, fault, status = FAULTS[name]
    upstream.script("m-x", behaviour)
    with pytest.raises(UpstreamError) as caught:
        await ask(transport, upstream, stream=stream)
    assert (caught.value.fault, caught.value.status) == (fault, status)
    assert caught.value.retry_after == (7.0 if name == "429" else None)
    assert "CANARY" not in f"{caught.value.message} {caught.value.body}"
    assert len(upstream.calls) == 1


async def test_a_refused_connection(transport):
    class Nobody:
        url = "http://127.0.0.1:9/v1"

    with pytest.raises(UpstreamError) as caught:
        await ask(transport, Nobody)
    assert caught.value.fault == "connect"


async def test_a_reply_that_is_no_json(transport, upstream):
    upstream.script("m-x", fake.reply(b"<html>"))
    with pytest.raises(UpstreamError) as caught:
        await ask(transport, upstream)
    assert caught.value.fault == "malformed"


@pytest.mark.parametrize("ending", ["end", "cut", "reset"])
async def test_a_stream_that_its_provider_did_not_end_is_not_called_whole(transport, upstream, ending):
    """The SDK makes up a `stop` for it."""
    begun = [fake.ROLE, fake.event(fake.delta(content="half an "))]
    upstream.script("m-x", fake.stream(begun, ending=ending))
    try:
        record = await ask(transport, upstream, stream=True)
    except UpstreamError as fault:
        assert fault.fault in ("connect", "server", "malformed")
    else:
        assert record.seen.completion == "half an "
        assert not record.done and not record.seen.finished


async def test_nothing_at_all_is_malformed(transport, upstream):
    upstream.script("m-x", fake.stream(b""))
    with pytest.raises(UpstreamError) as caught:
        await ask(transport, upstream, stream=True)
    assert caught.value.fault == "malformed"


@pytest.mark.parametrize("stream", [False, True], ids=["json", "sse"])
async def test_cancelling_ends_the_call_upstream(transport, upstream, stream):
    upstream.script("m-x", fake.stream([fake.ROLE] * 5, pause=0.2, ending="hang") if stream else fake.hang)
    task = asyncio.ensure_future(ask(transport, upstream, stream=stream))
    until = time.monotonic() + 10
    while not upstream.calls and time.monotonic() < until:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    task.cancel()
    cancelled = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await task
    left = await asyncio.to_thread(upstream.wait_left, upstream.calls[0])
    assert left - cancelled < 2


async def test_closing_a_reply_ends_the_call_upstream(transport, upstream):
    upstream.script("m-x", fake.stream([fake.ROLE] * 3, ending="hang"))
    body = chat_call(raw({**HELLO, "stream": True}), worker_at(upstream.url), stream=True).body
    reply = await transport.post(upstream.url, {"authorization": "Bearer k"}, body, 2.0)
    reply.close()
    await asyncio.to_thread(upstream.wait_left, upstream.calls[0])


SMUGGLED = [
    {"mock_response": "not asked"},
    {"api_base": "http://127.0.0.1:9"},
    {"base_url": "http://127.0.0.1:9"},
    {"api_key": "k"},
    {"azure_ad_token": "k"},
    {"extra_body": {"azure_ad_token": "k"}},
    {"extra_headers": {"x": "y"}},
    {"custom_llm_provider": "anthropic"},
    {"fallbacks": ["openai/other"]},
    {"model_list": []},
    {"num_retries": 9},
    {"timeout": 0.001},
    {"drop_params": True},
    {"caching": True},
    {"logger_fn": "x"},
    {"tools": [{"type": "mcp", "server_url": "litellm_proxy"}]},
    {"tools": [{"type": "web_search"}]},
]
BY_ADDRESS = [
    {"type": "image_url", "image_url": {"url": "http://169.254.169.254/latest/meta-data"}},
    {"type": "image_url", "image_url": " https://example.org/a.png"},
    {"type": "file", "file": {"file_id": "gs://bucket/a"}},
    {"type": "video_url", "video_url": {"url": "file:///etc/passwd"}},
]


@pytest.mark.parametrize("fields", SMUGGLED, ids=lambda fields: next(iter(fields)))
def test_the_sdks_own_arguments_are_not_a_clients_to_give(fields):
    with pytest.raises(UpstreamError) as caught:
        litellm_body(raw({**HELLO, **fields}), worker_at("http://127.0.0.1:9"), stream=False)
    assert caught.value.fault == "bad_request" and caught.value.status == 400
    assert next(iter(fields)) in caught.value.message


@pytest.mark.parametrize("part", BY_ADDRESS, ids=lambda part: part["type"])
def test_nothing_is_fetched_for_a_client(part):
    messages = [{"role": "user", "content": [{"type": "text", "text": "see http://a.example"}, part]}]
    with pytest.raises(UpstreamError, match="by address"):
        litellm_body(raw({**HELLO, "messages": messages}), worker_at("http://127.0.0.1:9"), stream=False)


async def test_an_image_as_data_and_labels_pass(transport, upstream):
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    messages = [{"role": "user", "content": [{"type": "text", "text": "see http://a.example"}, picture]}]
    await ask(transport, upstream, messages=messages, metadata={"team": "blue"}, store=True)
    assert upstream.calls[0].json == {"model": "m-x", "messages": messages}


def test_a_worker_may_have_no_address():
    toml = '[[workers]]\nname = "b"\ndescription = "d"\nmodel = "bedrock/m"\nquirks = { api = "litellm" }\n'
    assert Pool.of(load_text(toml)).workers[0].endpoints[0].base_url == NO_ADDRESS
    with pytest.raises(ConfigError, match="expected either base_url or endpoints"):
        load_text(toml.replace('quirks = { api = "litellm" }\n', ""))


def test_the_environment_is_settled_before_the_import(transport):
    assert os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] == "true"
    assert os.environ["LITELLM_MODE"] == "PRODUCTION"
