"""The sandbox's server over real HTTP on loopback: OpenAI's shapes, refusals, the journal."""

from __future__ import annotations

import asyncio
import json
import time

import aiohttp
import openai
import pytest

from pointsman.sandbox.serve import serving
from pointsman.sandbox.tasks import tasks
from pointsman.sandbox.truth import truth
from pointsman.sandbox.world import World
from pointsman.verifiers import verify

SEED = 1
WORLD = World(SEED)
WORKER = WORLD.names[0]
TOOLED = next(w.name for w in WORLD.workers if "tools" in w.capabilities)
UNTOOLED = next(w.name for w in WORLD.workers if "tools" not in w.capabilities)
ASK = [{"role": "user", "content": "What is 17 times 23?"}]
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer"},
                "unit": {"enum": ["C", "F"]},
                "tags": {"type": "array", "items": {"type": "boolean"}},
            },
        },
    },
}


async def test_a_completion(http):
    status, body, _ = await http.chat()
    assert status == 200
    assert body["object"] == "chat.completion"
    assert body["model"] == WORKER
    assert body["choices"][0]["finish_reason"] == "stop"
    assert body["choices"][0]["message"]["role"] == "assistant"
    assert "Answer:" in body["choices"][0]["message"]["content"]
    usage = body["usage"]
    assert usage["prompt_tokens"] == 5 + 4
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


async def test_a_stream_says_the_same_in_pieces(http):
    _, whole, _ = await http.chat()
    status, raw = await http.raw_chat(stream=True, stream_options={"include_usage": True})
    found = http.events(raw)
    assert status == 200
    assert found[-1] == "[DONE]"
    chunks = [json.loads(event) for event in found[:-1]]
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert all(chunk["usage"] is None for chunk in chunks[:-1])
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == whole["usage"]
    deltas = [c["choices"][0]["delta"].get("content") for c in chunks[1:-1]]
    assert len([d for d in deltas if d]) >= 2
    assert "".join(d or "" for d in deltas) == whole["choices"][0]["message"]["content"]
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert len({chunk["id"] for chunk in chunks}) == 1


async def test_a_stream_without_usage_when_it_was_not_asked_for(http):
    _, raw = await http.raw_chat(stream=True)
    assert all("usage" not in json.loads(event) for event in http.events(raw)[:-1])


async def test_the_openai_client_reads_both(base):
    async with openai.AsyncOpenAI(base_url=f"{base}/v1", api_key="none", max_retries=0) as client:
        whole = await client.chat.completions.create(model=WORKER, messages=ASK)
        stream = await client.chat.completions.create(model=WORKER, messages=ASK, stream=True)
        pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
        assert "".join(pieces) == whole.choices[0].message.content
        models = [model.id async for model in client.models.list()]
    assert models == [*WORLD.names, "stand-in-router"]


async def test_models_say_that_they_are_simulated(http):
    async with http.get("/v1/models") as response:
        entries = (await response.json())["data"]
    assert all(entry["simulation"] is True and "not a language model" in entry["note"] for entry in entries)
    async with http.get("/healthz") as response:
        assert await response.json() == {"status": "ok", "simulation": True, "seed": SEED}


async def test_workers_err_as_often_as_their_world_says(http):
    table = truth(SEED)
    exam = list(tasks(SEED, "train", 400))

    async def right(task):
        _, body, _ = await http.chat(messages=[{"role": "user", "content": task.prompt}])
        return verify(task.verifier, body["choices"][0]["message"]["content"]) == 1

    got = sum(await asyncio.gather(*map(right, exam))) / len(exam)
    expected = sum(table.probability(WORKER, task.skills) for task in exam) / len(exam)
    assert abs(got - expected) < 4 * (0.25 / len(exam)) ** 0.5


async def test_one_prompt_gets_one_answer_and_another_seed_another_draw(http):
    async def content(**body):
        return (await http.chat(**body))[1]["choices"][0]["message"]["content"]

    assert await content() == await content()
    assert len({await content(seed=seed) for seed in range(30)}) > 1
    _, body, _ = await http.chat(n=12)
    assert [choice["index"] for choice in body["choices"]] == list(range(12))
    assert len({choice["message"]["content"] for choice in body["choices"]}) > 1
    assert body["choices"][0]["message"]["content"] == await content()


async def test_small_talk(http):
    _, body, _ = await http.chat(messages=[{"role": "user", "content": [{"type": "text", "text": "hello"}]}])
    assert "a simulated worker of the Pointsman sandbox" in body["choices"][0]["message"]["content"]


@pytest.mark.parametrize("extra", [{"response_format": {"type": "json_object"}}, {"messages": [
    {"role": "system", "content": "Respond with JSON."}, *ASK]}])  # fmt: skip
async def test_an_answer_as_json(http, extra):
    _, body, _ = await http.chat(**extra)
    assert list(json.loads(body["choices"][0]["message"]["content"])) == ["answer"]


async def test_only_the_answer(http):
    bare = [{"role": "system", "content": "Give only the answer."}, *ASK]
    _, body, _ = await http.chat(messages=bare)
    assert body["choices"][0]["message"]["content"].isdigit()


async def test_limits_and_stops(http):
    _, body, _ = await http.chat(max_tokens=2)
    assert body["choices"][0]["finish_reason"] == "length"
    assert len(body["choices"][0]["message"]["content"]) == 8
    _, body, _ = await http.chat(stop="Answer")
    assert "Answer" not in body["choices"][0]["message"]["content"]
    assert body["choices"][0]["finish_reason"] == "stop"


async def test_tool_calls(http):
    user = [{"role": "user", "content": "Please get_weather for Lisbon for 3 days in F"}]
    _, body, _ = await http.chat(model=TOOLED, messages=user, tools=[TOOL])
    message = body["choices"][0]["message"]
    assert body["choices"][0]["finish_reason"] == "tool_calls"
    assert message["content"] is None
    (call,) = message["tool_calls"]
    assert call["function"]["name"] == "get_weather"
    assert json.loads(call["function"]["arguments"]) == {"city": "Lisbon", "days": 3, "unit": "F", "tags": [True]}
    result = {"role": "tool", "tool_call_id": call["id"], "content": "21 degrees"}
    _, body, _ = await http.chat(model=TOOLED, messages=[*user, message, result], tools=[TOOL])
    assert body["choices"][0]["message"]["content"] == "The tool returned: 21 degrees"
    assert body["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize(("choice", "calls"), [("required", 1), ("none", 0), ("auto", 0), (None, 0),
    ({"type": "function", "function": {"name": "get_weather"}}, 1)])  # fmt: skip
async def test_tool_choice(http, choice, calls):
    _, body, _ = await http.chat(model=TOOLED, tools=[TOOL], tool_choice=choice)
    assert len(body["choices"][0]["message"].get("tool_calls", [])) == calls


async def test_a_streamed_tool_call_joins_up(http):
    _, raw = await http.raw_chat(model=TOOLED, tools=[TOOL], tool_choice="required", stream=True)
    deltas = [json.loads(event)["choices"][0]["delta"] for event in http.events(raw)[:-1]]
    parts = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    assert parts[0]["function"]["name"] == "get_weather"
    assert parts[0]["id"].startswith("call_")
    assert len(parts) >= 3
    assert json.loads("".join(part["function"]["arguments"] for part in parts))["days"] == 17


@pytest.mark.parametrize(
    ("body", "status", "code", "message"),
    [
        ({"model": "gpt-9"}, 404, "model_not_found", "does not exist in this sandbox"),
        ({"model": UNTOOLED, "tools": [TOOL]}, 400, None, "does not support tools"),
        ({"messages": []}, 400, None, "messages: expected a list of messages that is not empty"),
        ({"messages": ["x"]}, 400, None, "messages: expected a list of messages"),
        ({"n": 0.5}, 400, None, "n: expected 1 to 16, got 0.5"),
        ({"max_tokens": 0}, 400, None, "max_tokens: expected 1 or more, got 0"),
        ({"messages": [{"role": "user", "content": "x" * 600_000}]}, 400, "context_length_exceeded", "maximum context"),
    ],
)
async def test_refusals(http, body, status, code, message):
    got, answer, _ = await http.chat(**body)
    assert (got, answer["error"]["code"]) == (status, code)
    assert message in answer["error"]["message"]


@pytest.mark.parametrize("text", ["a\x00b", "\ud83d", "\u2028", "\ufeffhi", '{"', "[" * 3000, "9" * 5000, ""])
async def test_hostile_text_is_answered(http, text):
    for messages in ([{"role": "user", "content": text}], [*ASK, {"role": "tool", "content": text}]):
        raw = json.dumps({"model": WORKER, "messages": messages, "temperature": float("nan")})
        async with http.post("/v1/chat/completions", data=raw) as response:
            assert response.status == 200
            assert (await response.json())["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("raw", [b"[" * 200_000, b'{"a": ' * 100_000, b"\xff\xfe", b"[]", b"", b"9" * 10_000])
async def test_hostile_bodies_are_refused(http, raw):
    async with http.post("/v1/chat/completions", data=raw) as response:
        assert response.status == 400
        assert (await response.json())["error"]["type"] == "invalid_request_error"


async def test_refusals_outside_chat(http):
    async with http.post("/v1/chat/completions", data=b"{nope") as response:
        assert response.status == 400
        assert "body: expected JSON" in (await response.json())["error"]["message"]
    async with http.get("/v2") as response:
        assert response.status == 404
    async with http.put("/faults") as response:
        assert response.status == 405


async def test_the_journal_joins_by_serial_and_request_id(http):
    before = await http.journal()
    last = before[-1]["serial"] if before else 0
    headers = {"x-request-id": "call-7"}
    async with http.post("/v1/chat/completions", json={"model": WORKER, "messages": ASK}, headers=headers) as response:
        await response.read()
    await http.raw_chat(model="stand-in-router", stream=True)
    await http.chat(n=99)
    entries = (await http.journal())[len(before) :]
    assert [(e["worker"], e["stream"], e["status"]) for e in entries] == [
        (WORKER, False, "ok"),
        ("stand-in-router", True, "ok"),
        (WORKER, False, "400"),
    ]
    assert entries[0]["request_id"] == "call-7"
    assert [e["serial"] for e in entries] == sorted({e["serial"] for e in entries})
    async with http.get("/journal", params={"after": entries[0]["serial"], "limit": 1}) as response:
        assert [e["serial"] for e in await response.json()] == [entries[1]["serial"]]
    assert entries[0]["serial"] > last
    async with http.get("/journal", params={"after": "x"}) as response:
        assert response.status == 400


async def test_the_router_llm_over_http(http):
    options = json.dumps([{"option": "A", "description": "bread"}, {"option": "B", "description": "percentages"}])
    prompt = (
        f'[[ ## request ## ]]\n"What is 5% of 40?"\n\n[[ ## context ## ]]\n""\n\n[[ ## workers ## ]]\n{options}\n\n'
        "Respond with the field `[[ ## option ## ]]`."
    )
    ask = {"model": "stand-in-router", "messages": [{"role": "user", "content": prompt}]}
    _, body, _ = await http.chat(**ask, logprobs=True, top_logprobs=1)
    content = body["choices"][0]["logprobs"]["content"]
    assert body["choices"][0]["message"]["content"] == "[[ ## option ## ]]\nB\n\n[[ ## completed ## ]]"
    assert body["usage"]["completion_tokens"] == len(content)
    letter = next(token for token in content if token["token"] == "B")
    assert [t["token"] for t in letter["top_logprobs"]] == ["B"]
    _, body, _ = await http.chat(**ask, max_tokens=4)
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["choices"][0]["logprobs"] is None


async def test_latency_follows_its_scale(client_of):
    with serving(SEED, latency_scale=0.5) as url:
        async with aiohttp.ClientSession(url) as session:
            started = time.monotonic()
            assert (await client_of(session).chat())[0] == 200
            assert 0.05 < time.monotonic() - started < 5
