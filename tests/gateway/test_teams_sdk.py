"""Each pattern by OpenAI's own client through the served gateway on the sandbox: whole, streamed, with tools."""

from __future__ import annotations

import json

import httpx
import openai
import pytest

from pointsman.sandbox.serve import serving
from pointsman.sandbox.setup import toml_text
from pointsman.sandbox.team_tasks import team_tasks
from pointsman.sandbox.world import World
from pointsman.verifiers import verify

SEED = 3001
PATTERNS = """
[patterns.ladder]
pattern = "cascade"
tiers = [["{cheap}"], []]
[patterns.pair]
pattern = "sidekick"
sidekicks = ["{cheap}"]
[patterns.desk]
pattern = "handoff"
start = "{able}"
[patterns.panel]
pattern = "vote"
[patterns.sections]
pattern = "workflow"
[[patterns.sections.steps]]
subtask = "Answer the request; call get_weather where it asks for the weather."
[[patterns.sections.steps]]
subtask = "Check the answer and give the final one."
access = "all"
"""
NAMES = ("trinity", "ultra", "ladder", "pair", "desk", "panel", "sections")
LOOKUP = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@pytest.fixture(scope="module")
def team_gateway(running, database_url, tmp_path_factory):
    with serving(SEED) as url:
        world = World(SEED)
        able = [worker.name for worker in world.workers if "tools" in worker.capabilities]
        cheap = min(world.workers, key=lambda worker: worker.price_output).name
        toml = toml_text(SEED, int(url.rsplit(":", 1)[1]), "truthful")
        toml = toml.replace("epsilon = 0.05", "epsilon = 0")
        made = running.RunningGateway(
            toml + PATTERNS.format(cheap=cheap, able=able[0]), tmp_path_factory.mktemp("home"), database_url, {}
        )
        yield made
        made.close()


@pytest.fixture
def client(team_gateway):
    with openai.OpenAI(base_url=f"{team_gateway.url}/v1", api_key="anything", max_retries=0) as made:
        yield made


def task():
    return next(iter(team_tasks(SEED, "held_out", 1, ["two_step"])))


@pytest.mark.parametrize("name", NAMES)
def test_a_pattern_answers_whole_and_its_tree_reads_back(team_gateway, client, name):
    raw = client.chat.completions.with_raw_response.create(
        model=f"pointsman-{name}", messages=[{"role": "user", "content": task().prompt}]
    )
    answer = raw.parse()
    assert answer.choices[0].message.content and answer.choices[0].finish_reason == "stop"
    assert raw.headers["x-pointsman-pattern"] == name and raw.headers["x-pointsman-worker"] != "none"
    used = answer.usage
    assert used.total_tokens == used.prompt_tokens + used.completion_tokens > 0
    record = httpx.get(f"{team_gateway.url}/v1/decisions/{answer.id}").json()
    assert record["decision"]["kind"] == "pattern" and record["outcome"]["status"] == "ok"
    nodes = list(walk(record["children"]))
    assert nodes and all(node["outcome"] is not None for node in nodes)
    calls = [call for node in nodes for call in node["calls"] if call["purpose"] != "route"]
    assert record["outcome"]["calls"] == len(calls)
    routed = sum(
        (node["decision"]["router_input_tokens"] or 0) + (node["decision"]["router_output_tokens"] or 0)
        for node in nodes
    )
    given = sum(call["input_tokens"] + call["output_tokens"] for call in calls)
    apart = used.prompt_tokens_details.orchestration_input_tokens
    apart += used.completion_tokens_details.orchestration_output_tokens
    assert used.total_tokens + apart == given + routed  # nothing is counted twice, nothing is left out
    stored = team_gateway.record(raw.headers["x-pointsman-decision-id"])
    assert shape(stored["children"]) == shape(record["children"])


@pytest.mark.parametrize("name", NAMES)
def test_a_pattern_streams(client, name):
    chunks = list(
        client.chat.completions.create(
            model=f"pointsman-{name}",
            messages=[{"role": "user", "content": task().prompt}],
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage.completion_tokens > 0
    assert len({chunk.id for chunk in chunks}) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_pattern_asks_the_clients_tools_and_goes_on_with_their_results(team_gateway, client, name):
    messages = [{"role": "user", "content": "What is the weather in Paris? Use the tool get_weather."}]
    roots = []
    for _ in range(8):
        raw = client.chat.completions.with_raw_response.create(
            model=f"pointsman-{name}", messages=messages, tools=[LOOKUP]
        )
        roots.append(raw.headers["x-pointsman-decision-id"])
        message = raw.parse().choices[0].message
        if not message.tool_calls:
            break
        assert all(json.loads(call.function.arguments) is not None for call in message.tool_calls)
        messages.append(message.to_dict())
        messages += [{"role": "tool", "tool_call_id": call.id, "content": "rain, 9 C"} for call in message.tool_calls]
    assert message.content and not message.tool_calls
    assert len(roots) > 1, "no worker asked for the tool"
    second = team_gateway.record(roots[1])
    assert second["decision"]["forced"] == "sticky" and "resumed" in second["decision"]["flags"]
    assert second["decision"]["episode_id"] == team_gateway.record(roots[0])["decision"]["episode_id"]
    resumed = [node["decision"] for node in walk(second["children"]) if node["decision"]["forced"] == "sticky"]
    assert resumed, "nobody went on with the results"


@pytest.fixture(scope="module")
def choosing(running, database_url, tmp_path_factory):
    """A gateway whose router LLM chooses the pattern for the model `pointsman`."""
    with serving(SEED) as url:
        toml = toml_text(SEED, int(url.rsplit(":", 1)[1]), "truthful").replace("epsilon = 0.05", "epsilon = 0.2")
        toml = toml.replace("[router]\n", '[router]\npatterns = ["single", "ultra", "trinity"]\n')
        made = running.RunningGateway(toml, tmp_path_factory.mktemp("home"), database_url, {})
        yield made
        made.close()


def test_the_router_chooses_the_pattern_where_it_is_configured(choosing):
    asked = {"model": "pointsman", "messages": [{"role": "user", "content": task().prompt}]}
    answer = choosing.client.post("/v1/chat/completions", json=asked)
    assert answer.status_code == 200 and answer.json()["choices"][0]["message"]["content"]
    record = choosing.record(answer)
    root = record["decision"]
    assert (root["kind"], root["forced"], root["router_kind"]) == ("pattern", None, "harness")
    assert set(root["probabilities"]) == {"single", "ultra", "trinity"}
    assert sum(root["probabilities"].values()) == pytest.approx(1)
    assert min(root["probabilities"].values()) >= 0.2 / 3 - 1e-9
    assert root["chosen"] == answer.headers["x-pointsman-pattern"] and record["children"]
    assert float(answer.headers["x-pointsman-propensity"]) == pytest.approx(root["propensity"])
    told = choosing.client.post("/v1/route", json=asked).json()
    assert set(told["expected"]) == set(told["probabilities"]) == {"single", "ultra", "trinity"}
    named = choosing.client.post("/v1/chat/completions", json={**asked, "model": "pointsman-single"})
    assert choosing.record(named)["decision"]["forced"] == "direct"


def test_the_other_surfaces_ride_on_the_core(team_gateway):
    said = team_gateway.client.post("/v1/responses", json={"model": "pointsman-trinity", "input": task().prompt}).json()
    assert said["status"] == "completed" and said["output"][-1]["content"][0]["text"]
    body = {"model": "pointsman-ultra", "max_tokens": 500, "messages": [{"role": "user", "content": task().prompt}]}
    message = team_gateway.client.post("/v1/messages", json=body).json()
    assert message["type"] == "message" and message["content"][0]["text"]
    streamed = team_gateway.client.post("/v1/messages", json={**body, "stream": True}).text
    assert "event: message_start" in streamed and "event: message_stop" in streamed
    events = team_gateway.client.post(
        "/v1/responses", json={"model": "pointsman-panel", "input": task().prompt, "stream": True}
    ).text
    assert "event: response.completed" in events


def test_two_skills_are_better_served_by_a_plan(client):
    asked = list(team_tasks(SEED, "held_out", 12, ["two_step"]))

    def right(model):
        answers = (
            client.chat.completions.create(model=model, messages=[{"role": "user", "content": one.prompt}])
            for one in asked
        )
        return sum(
            verify(one.verifier, answer.choices[0].message.content or "")
            for one, answer in zip(asked, answers, strict=True)
        )

    assert right("pointsman-ultra") >= right("pointsman")


def walk(children):
    for child in children:
        yield child
        yield from walk(child["children"])


def shape(children):
    return [
        (child["decision"]["id"], child["decision"]["kind"], len(child["calls"]), shape(child["children"]))
        for child in children
    ]
