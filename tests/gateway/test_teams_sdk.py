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
