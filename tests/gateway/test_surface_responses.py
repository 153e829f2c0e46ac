"""`/v1/responses` through the whole gateway: OpenAI's SDK and the Agents SDK, and what is on record of it."""

from __future__ import annotations

import json

import agents
import openai
import pytest
from pydantic import BaseModel

WEATHER = {
    "type": "function",
    "name": "weather",
    "strict": True,
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}


class Point(BaseModel):
    x: int
    y: int


@pytest.fixture
def client(gateway):
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="anything", max_retries=0) as made:
        yield made


def call(city: str, number: int, **more):
    return {
        "id": f"call_{city}",
        "type": "function",
        "function": {"name": "weather", "arguments": json.dumps({"city": city})},
        **more,
    }


def asks(fake, *cities: str):
    """Calls the tool for every city, as JSON or as a stream."""

    async def behave(upstream_call):
        if upstream_call.json.get("stream"):
            events = [fake.event(fake.delta(tool_calls=[call(c, n, index=n)])) for n, c in enumerate(cities)]
            await fake.stream([fake.ROLE, *events, fake.event(fake.delta(finish="tool_calls")), fake.DONE])(
                upstream_call
            )
        else:
            calls = [call(city, n) for n, city in enumerate(cities)]
            whole = fake.completion(None, message={"tool_calls": calls}, finish="tool_calls")
            await fake.reply(whole)(upstream_call)

    return behave


def test_an_answer_and_its_rows(gateway, client, upstream, fake):
    upstream.script("m-alpha", fake.text("Bonjour 🌍"))
    raw = client.responses.with_raw_response.create(
        model="pointsman",
        instructions="Be brief.",
        input="Say hello",
        metadata={"pointsman": '{"tags": ["greeting"]}', "kept": "yes"},
        extra_headers={"x-pointsman-episode-id": "chat-7"},
    )
    response = raw.parse()
    decision = raw.headers["x-pointsman-decision-id"]
    assert response.output_text == "Bonjour 🌍" and response.status == "completed"
    assert response.id == "resp_" + decision.replace("-", "")
    assert response.usage.total_tokens == 15
    assert raw.headers["x-pointsman-worker"] == "alpha" and raw.headers["x-pointsman-propensity"] == "1"
    sent = upstream.calls[0]
    assert sent.path == "/v1/chat/completions" and sent.json["model"] == "m-alpha"
    assert sent.json["metadata"] == {"kept": "yes"} and "input" not in sent.json
    record = gateway.record(decision)
    request = record["request"]
    assert (request["surface"], request["model"], request["text"]) == ("responses", "pointsman", "Say hello")
    assert request["body"]["input"] == "Say hello" and "messages" not in request["body"]
    assert request["hints"]["episode_id"] == "chat-7" and request["tags"] == ["greeting"]
    assert record["outcome"]["status"] == "ok" and record["calls"][0]["completion"] == "Bonjour 🌍"


def test_a_stream_and_its_rows(gateway, client, upstream, fake):
    upstream.script("m-alpha", fake.text("héllo"))
    with client.responses.with_streaming_response.create(model="pointsman", input="x", stream=True) as raw:
        decision = raw.headers["x-pointsman-decision-id"]
        kinds = [event.type for event in raw.parse()]
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed"
    assert kinds.count("response.output_text.delta") == 5
    assert gateway.record(decision)["request"]["stream"] is True
    with client.responses.stream(model="pointsman", input="x") as stream:
        final = stream.get_final_response()
    assert final.output_text == "héllo" and final.usage.input_tokens == 10


def test_usage_is_estimated_where_the_worker_gives_none(client, upstream, fake):
    chunks = [fake.ROLE, fake.event(fake.delta(content="four words are here")), fake.event(fake.delta(finish="stop"))]
    upstream.script("m-alpha", fake.stream([*chunks, fake.DONE]))
    events = list(client.responses.create(model="pointsman", input="x", stream=True))
    assert events[-1].response.usage.output_tokens == 5
    assert events[-1].response.usage.to_dict()["estimated"] is True


def test_structured_outputs(client, upstream, fake):
    upstream.script("m-alpha", fake.text('{"x": 1, "y": 2}'))
    parsed = client.responses.parse(model="pointsman", input="a point", text_format=Point)
    assert parsed.output_parsed == Point(x=1, y=2)
    assert upstream.calls[0].json["response_format"]["json_schema"]["strict"] is True


@pytest.mark.parametrize("streamed", [False, True], ids=["JSON", "SSE"])
def test_a_tool_loop_stays_with_its_worker(gateway, client, upstream, fake, streamed):
    upstream.script("m-beta", asks(fake, "Köln", "Oslo"), fake.text("dry, wet"))
    upstream.script("m-alpha", fake.text("never asked"))
    turns = [{"role": "user", "content": "beta, the weather in Köln and Oslo?"}]  # the rule's word is "beta"
    decisions = []
    for _ in range(2):
        raw = client.responses.with_raw_response.create(
            model="pointsman", input=turns, tools=[WEATHER], stream=streamed
        )
        parsed = raw.parse()
        response = [*parsed][-1].response if streamed else parsed
        decisions.append(raw.headers["x-pointsman-decision-id"])
        turns += [item.to_dict() for item in response.output]
        for item in response.output:
            if item.type == "function_call":
                city = json.loads(item.arguments)["city"]
                turns.append({"type": "function_call_output", "call_id": item.call_id, "output": f"{city} is dry"})
    assert response.output_text == "dry, wet"
    first, second = (gateway.record(decision) for decision in decisions)
    assert first["decision"]["episode_id"] == second["decision"]["episode_id"]
    assert (first["decision"]["forced"], second["decision"]["forced"]) == (None, "sticky")
    roles = [message["role"] for message in upstream.calls[1].json["messages"]]
    assert roles == ["user", "assistant", "tool", "tool"]


@pytest.mark.parametrize("streamed", [False, True], ids=["JSON", "SSE"])
async def test_the_agents_sdk_runs_a_tool_loop(gateway, upstream, fake, streamed):
    upstream.script("m-alpha", asks(fake, "Paris", "Oslo"), fake.text("Both are dry."))
    agents.set_tracing_disabled(True)
    asked = []

    @agents.function_tool
    def weather(city: str) -> str:
        """The weather of a city."""
        asked.append(city)
        return f"{city} is dry"

    async with openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key="anything", max_retries=0) as client:
        model = agents.OpenAIResponsesModel("pointsman", client)
        agent = agents.Agent(name="a", instructions="Use tools.", tools=[weather], model=model)
        if streamed:
            result = agents.Runner.run_streamed(agent, "Paris and Oslo?")
            items = [event.name async for event in result.stream_events() if event.type == "run_item_stream_event"]
            assert items.count("tool_called") == items.count("tool_output") == 2
        else:
            result = await agents.Runner.run(agent, "Paris and Oslo?")
    assert result.final_output == "Both are dry." and sorted(asked) == ["Oslo", "Paris"]
    assert [m["role"] for m in upstream.calls[1].json["messages"]] == ["system", "user", "assistant", "tool", "tool"]


def test_refusals_are_in_this_apis_words_and_on_record(gateway, client):
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(model="pointsman", input="x", previous_response_id="resp_1")
    assert refused.value.param == "previous_response_id"
    record = gateway.record(refused.value.response.headers["x-pointsman-decision-id"])
    assert record["request"]["surface"] == "responses" and record["outcome"]["status"] == "rejected"
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(model="pointsman", input="x" * 900_000)
    assert (refused.value.code, refused.value.param) == ("context_length_exceeded", "input")
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model="nobody", input="x")
    assert gateway.client.get("/v1/responses").status_code == 405


def test_feedback_by_the_responses_id(gateway, client, upstream, fake):
    upstream.script("m-alpha", fake.text("42"))
    response = client.responses.create(model="pointsman", input="x")
    word = {"completion_id": response.id, "metric": "correct", "value": True}
    answer = gateway.client.post("/v1/feedback", json=word)
    assert answer.status_code == 200 and answer.json()["joined"] is True
    decision = answer.json()["decision_id"]
    assert response.id == "resp_" + decision.replace("-", "")
    assert gateway.client.get(f"/v1/decisions/{response.id}").json()["decision"]["id"] == decision
    gateway.record(decision)
    assert gateway.record(decision)["feedback"][0]["value"] is True
    gone = {**word, "completion_id": "resp_" + "0" * 32}
    assert gateway.client.post("/v1/feedback", json=gone).status_code == 404
