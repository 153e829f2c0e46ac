"""OpenAI's own client against the gateway: sync, async, streams, tools, structured outputs, errors."""

from __future__ import annotations

import json

import openai
import pytest
from pydantic import BaseModel

USER = [{"role": "user", "content": "hello"}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}


class Point(BaseModel):
    x: int
    y: int


@pytest.fixture
def client(gateway):
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="anything", max_retries=0) as made:
        yield made


def tool_stream(fake):
    parts = [
        [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": ""}}],
        [{"index": 0, "function": {"arguments": '{"city":'}}],
        [{"index": 0, "function": {"arguments": '"Köln"}'}}],
    ]
    events = [fake.event(fake.delta(tool_calls=part)) for part in parts]
    return fake.stream([fake.ROLE, *events, fake.event(fake.delta(finish="tool_calls")), fake.DONE])


def test_a_completion_with_its_headers(client, upstream, fake):
    upstream.script("m-alpha", fake.text("hello 🌍"))
    raw = client.chat.completions.with_raw_response.create(
        model="pointsman", messages=USER, metadata={"a": "b"}, extra_body={"new_field": {"x": 1}}
    )
    assert raw.headers["x-pointsman-worker"] == "alpha"
    completion = raw.parse()
    assert completion.choices[0].message.content == "hello 🌍"
    assert completion.usage.total_tokens == 15
    assert upstream.calls[0].json["new_field"] == {"x": 1}


def test_a_stream_with_comments_and_usage(client, upstream, fake):
    body = b": PROCESSING\n\n: ping\n\n" + fake.words("你", "好", "🌍")
    upstream.script("m-alpha", fake.stream([body[n : n + 1] for n in range(len(body))]))
    chunks = list(
        client.chat.completions.create(
            model="pointsman", messages=USER, stream=True, stream_options={"include_usage": True}
        )
    )
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "你好🌍"
    assert [c.usage.prompt_tokens if c.usage else None for c in chunks][-1] == 10
    assert all(c.usage is None for c in chunks[:-1])


def test_the_stream_helper(client, upstream, fake):
    upstream.script("m-alpha", fake.text("helped"))
    with client.chat.completions.stream(model="pointsman", messages=USER) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    assert final.choices[0].message.content == "helped"
    assert kinds.count("content.delta") == 7 and kinds[-1] == "content.done"  # one for the role


def test_a_tool_loop(client, upstream, fake):
    upstream.script("m-alpha", tool_stream(fake), fake.text("rain"))
    with client.chat.completions.stream(model="pointsman", messages=USER, tools=[WEATHER]) as stream:
        message = stream.get_final_completion().choices[0].message
    call = message.tool_calls[0]
    assert (call.function.name, json.loads(call.function.arguments)) == ("get_weather", {"city": "Köln"})
    messages = [*USER, message.to_dict(), {"role": "tool", "tool_call_id": call.id, "content": "rain"}]
    raw = client.chat.completions.with_raw_response.create(model="pointsman", messages=messages, tools=[WEATHER])
    assert raw.parse().choices[0].message.content == "rain"
    assert raw.headers["x-pointsman-router"] == "none"  # it stays with alpha


def test_structured_outputs(client, upstream, fake):
    upstream.script("m-alpha", fake.text('{"x": 1, "y": 2}'))
    parsed = client.chat.completions.parse(model="pointsman", messages=USER, response_format=Point)
    assert parsed.choices[0].message.parsed == Point(x=1, y=2)
    assert upstream.calls[0].json["response_format"]["json_schema"]["strict"] is True


def test_models_and_errors(client, upstream, fake):
    assert {"pointsman", "alpha"} <= {model.id for model in client.models.list()}
    assert client.models.retrieve("alpha").owned_by == "pointsman"
    with pytest.raises(openai.NotFoundError) as missing:
        client.chat.completions.create(model="nobody", messages=USER)
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model="pointsman", messages=[])
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="pm_wrong").models.list()
    upstream.script("m-gamma", fake.reply({}, 429, {"retry-after": "77"}))
    with pytest.raises(openai.RateLimitError) as limited:
        client.chat.completions.create(model="gamma", messages=USER, stream=True)
    assert 76 <= int(limited.value.response.headers["retry-after"]) <= 77


def test_an_error_in_a_stream_is_raised(client, upstream, fake):
    upstream.script("m-alpha", fake.stream(fake.event(fake.delta(content="so")), ending="reset"))
    said = []
    with pytest.raises(openai.APIError, match="the connection was lost"):
        for chunk in client.chat.completions.create(model="alpha", messages=USER, stream=True):
            said.append(chunk.choices[0].delta.content)
    assert said == ["so"]


async def test_the_async_client(gateway, upstream, fake):
    upstream.script("m-alpha", fake.text("one"), fake.text("two"), tool_stream(fake))
    async with openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key="anything", max_retries=0) as client:
        whole = await client.chat.completions.create(model="pointsman", messages=USER)
        assert whole.choices[0].message.content == "one"
        parts = [
            chunk.choices[0].delta.content or ""
            async for chunk in await client.chat.completions.create(model="pointsman", messages=USER, stream=True)
        ]
        assert "".join(parts) == "two"
        async with client.chat.completions.stream(model="pointsman", messages=USER, tools=[WEATHER]) as stream:
            final = await stream.get_final_completion()
        assert final.choices[0].message.tool_calls[0].function.parsed_arguments == {"city": "Köln"}
