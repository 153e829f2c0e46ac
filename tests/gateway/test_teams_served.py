"""A team's request at the gateway: one outcome, one budget, one deadline; who leaves, what fails, what is foretold."""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import httpx
import pytest

from pointsman.budgets.manage import set_budget
from pointsman.identity import DEFAULT_PROJECT_ID, hash_key
from pointsman.queries.overview import overview

TRINITY = "pointsman-trinity"
PATTERNS = """
[patterns.chain]
pattern = "workflow"
[[patterns.chain.steps]]
subtask = "FIRST"
worker = "alpha"
[[patterns.chain.steps]]
subtask = "SECOND"
worker = "beta"
access = "all"
[patterns.dear]
pattern = "workflow"
[[patterns.dear.steps]]
subtask = "FIRST"
worker = "beta"
[[patterns.dear.steps]]
subtask = "SECOND"
worker = "alpha"
access = "all"
[patterns.pair]
pattern = "vote"
n = 2
workers = ["alpha", "beta"]
[patterns.alone]
pattern = "single"
"""


@pytest.fixture(scope="module")
def team(make_gateway):
    return make_gateway(more=PATTERNS)


def nodes(children):
    for child in children:
        yield child
        yield from nodes(child["children"])


def test_the_models_that_are_patterns(team):
    listed = {model["id"]: model["pointsman"] for model in team.client.get("/v1/models").json()["data"]}
    kinds = {name: about["pattern"] for name, about in listed.items() if about["kind"] == "pattern"}
    assert kinds == {
        TRINITY: "trinity", "pointsman-ultra": "workflow", "pointsman-chain": "workflow", "pointsman-dear": "workflow",
        "pointsman-pair": "vote", "pointsman-alone": "single",
    }  # fmt: skip
    assert listed[TRINITY]["description"]
    assert team.chat("x", model="pointsman-nothing").status_code == 404


def test_one_outcome_binds_the_tree(team, upstream, fake):
    upstream.script("m-alpha", fake.text("first"))
    upstream.script("m-beta", fake.text("second"))
    answer = team.chat("hello", model="pointsman-chain", metadata={"pointsman": {"trace": True}})
    said = answer.json()
    assert said["choices"][0]["message"]["content"] == "second"
    assert [node["worker"] for node in said["pointsman"]["tree"] if node["step"]] == ["alpha", "beta"]
    assert (answer.headers["x-pointsman-pattern"], answer.headers["x-pointsman-worker"]) == ("chain", "beta")
    record = team.record(answer)
    root, below = record["decision"], list(nodes(record["children"]))
    assert (root["kind"], root["pattern"], root["forced"]) == ("pattern", "workflow", "direct")
    assert (record["outcome"]["status"], record["outcome"]["calls"], record["outcome"]["worker"]) == ("ok", 2, "beta")
    assert float(record["outcome"]["cost"]) == pytest.approx(
        sum(float(call["cost"]) for node in below for call in node["calls"])
    )
    assert record["request"]["model"] == "pointsman-chain"
    assert all(node["decision"]["request_id"] == root["request_id"] for node in below)
    assert [node["decision"]["step"] for node in below if node["calls"]] == [1, 2]
    again = team.client.post("/v1/feedback", json={"completion_id": said["id"], "metric": "correct", "value": True})
    assert (again.status_code, again.json()["decision_id"]) == (200, root["id"])


def test_the_last_step_streams_and_progress_goes_before_it(team, upstream, fake):
    for form in ("comments", "events"):
        upstream.script("m-alpha", fake.text("first"))
        upstream.script("m-beta", fake.stream(fake.words("sec", "ond"), pause=0.01))
        raw = team.client.post(
            "/v1/chat/completions",
            json={"model": "chain", "stream": True, "messages": [{"role": "user", "content": "x"}]},
            headers={"x-pointsman-progress": form},
        ).text
        events = raw.split("\n\n")
        told = [event for event in events if event.startswith((": pointsman", "event: pointsman"))]
        answer = [json.loads(event[6:]) for event in events if event.startswith("data: {")]
        assert len(told) > 4 and events.index(told[-1]) > events.index(told[0])
        pieces = [chunk["choices"][0]["delta"].get("content") for chunk in answer if chunk["choices"]]
        assert [piece for piece in pieces if piece] == ["sec", "ond"]
        first = next(place for place, event in enumerate(events) if '"content":"sec"' in event)
        assert all(events.index(event) < first for event in told if "call_started" in event)
        assert events[-2] == "data: [DONE]"


def test_leaving_closes_every_call_and_ends_the_tree_once(team, upstream, fake):
    upstream.script("m-alpha", fake.hang)
    upstream.script("m-beta", fake.hang)
    with pytest.raises(httpx.ReadTimeout):
        team.client.post(
            "/v1/chat/completions",
            json={"model": "pointsman-pair", "messages": [{"role": "user", "content": "x"}]},
            headers={"x-pointsman-episode-id": "leaving"},
            timeout=0.4,
        )
    left = time.monotonic()
    calls = [*upstream.of("m-alpha"), *upstream.of("m-beta")]
    assert len(calls) == 2
    assert all(upstream.wait_left(call) - left < 2 for call in calls)
    root = newest_root(team)
    assert root["outcome"]["status"] == "client_cancelled"
    assert {node["outcome"]["status"] for node in nodes(root["children"])} <= {"client_cancelled", "ok"}
    assert [call["status"] for node in nodes(root["children"]) for call in node["calls"]] == ["cancelled"] * 2


def test_one_worker_down_in_the_middle(team, upstream, fake):
    upstream.script("m-alpha", fake.text("first"))
    upstream.script("m-beta", fake.reply({}, 500))
    answer = team.chat("x", model="pointsman-chain")
    assert answer.json()["choices"][0]["message"]["content"] == "first"
    assert answer.headers["x-pointsman-worker"] == "alpha"
    upstream.script("m-alpha", fake.reply({}, 500))
    failed = team.chat("x", model="pointsman-chain")
    assert failed.status_code in (502, 200)


def test_nobody_answers(team, upstream, fake):
    for name in ("m-alpha", "m-beta", "m-gamma"):
        upstream.script(name, fake.reply({}, 500))
    failed = team.chat("x", model="pointsman-chain")
    assert failed.status_code == 502
    record = team.record(failed)
    assert record["outcome"]["status"] == "upstream_error"


def test_the_deadline_binds_the_tree(team, upstream, fake):
    upstream.script("m-alpha", fake.text("first"))
    upstream.script("m-beta", fake.hang)
    began = time.monotonic()
    answer = team.chat("x", model="pointsman-chain", headers={"x-pointsman-deadline": "0.5"})
    assert time.monotonic() - began < 1.5
    assert answer.json()["choices"][0]["message"]["content"] == "first"  # the best that there is by then
    second = list(nodes(team.record(answer)["children"]))[-1]
    assert (second["decision"]["step"], second["outcome"]["status"]) == (2, "timeout")


def test_the_budget_binds_the_tree(team, upstream, fake):
    refused = team.chat("x", model="pointsman-chain", headers={"x-pointsman-budget": "0.0000001"})
    assert refused.status_code == 400 and refused.json()["error"]["code"] in ("no_eligible_worker", "limit_reached")
    upstream.script("m-beta", fake.text("first"))
    one = team.chat("x", model="pointsman-dear", max_tokens=100, headers={"x-pointsman-budget": "0.00105"})
    assert one.json()["choices"][0]["message"]["content"] == "first"
    assert team.record(one)["outcome"]["reason"].startswith("limit: money")


def test_a_keys_budget_is_spent_by_whole_trees_and_never_overspent(team, upstream, fake):
    # Of 500 output tokens each, a chain costs .00502 of alpha and .00151 of beta.
    usage = {"prompt_tokens": 10, "completion_tokens": 500, "total_tokens": 510}
    for name in ("m-alpha", "m-beta"):
        upstream.script(name, fake.reply(fake.completion("fine", usage=usage)))
    key = team.key()
    entry = team.state.directory.keys[hash_key(key)]
    with team.engine.begin() as connection:
        set_budget(connection, project_id=DEFAULT_PROJECT_ID, key_id=entry.id, limit_usd=Decimal("0.05"))
    team.refresh()
    bearer = {"authorization": f"Bearer {key}"}
    answers = [team.chat("x", model="pointsman-chain", max_tokens=500, headers=bearer) for _ in range(10)]
    statuses = [answer.status_code for answer in answers]
    assert statuses[:4] == [200] * 4 and statuses[-1] == 429
    costs = [Decimal(team.record(answer)["outcome"]["cost"]) for answer in answers if answer.status_code == 200]
    assert costs[0] == Decimal("0.00653")
    assert sum(costs) <= Decimal("0.05")


def test_route_foretells_a_pattern_with_intervals(team, upstream, fake):
    """From its shape at first, and from its runs once there are twenty: no other test here ends a run of `pair`."""
    asked = {"model": "pointsman-pair", "messages": [{"role": "user", "content": "hello"}]}
    told = team.client.post("/v1/route", json={**asked, "model": "pointsman-chain"}).json()
    assert (told["pattern"], told["kind"], told["worker"]) == ("chain", "workflow", None)
    assert told["expected"]["chain"]["calls"] == {"low": 1, "expected": 1.5, "high": 2}
    for name in ("m-alpha", "m-beta"):
        upstream.script(name, fake.text("the same"))
    for _ in range(20):
        answer = team.chat("hello", model="pointsman-pair")
    ran = team.client.post("/v1/route", json=asked).json()["expected"]["pair"]
    assert (ran["runs"], ran["calls"]["expected"]) == (20, 2.0)
    cost = float(team.record(answer)["outcome"]["cost"])
    assert 0.9 * cost < float(ran["cost_usd"]["expected"]) < 1.1 * cost
    assert ran["latency_ms"]["low"] <= ran["latency_ms"]["expected"] <= ran["latency_ms"]["high"]
    record = team.client.get(f"/v1/decisions/{told['decision_id']}").json()
    assert (record["decision"]["origin"], record["decision"]["kind"]) == ("dry_run", "pattern")


def test_traffic_counts_a_tree_once(make_gateway, upstream, fake):
    gateway = make_gateway(more=PATTERNS)
    key = gateway.key(project="counted-once")
    upstream.script("m-alpha", fake.text("first"))
    upstream.script("m-beta", fake.text("second"))
    for _ in range(3):
        answer = gateway.chat("x", model="pointsman-chain", headers={"authorization": f"Bearer {key}"})
    record = gateway.record(answer)
    project = record["decision"]["project_id"]
    until = datetime.now(UTC) + timedelta(minutes=1)
    seen = overview(gateway.engine, project, until - timedelta(hours=1), until, timedelta(hours=1))
    assert (seen.totals.decisions, seen.totals.success.n, dict(seen.patterns)) == (3, 3, {"workflow": 3})
    assert float(seen.totals.cost) == pytest.approx(3 * float(record["outcome"]["cost"]))
    assert seen.workers == (), "no worker was chosen by a root"
    gateway.close()


def test_a_run_that_waits_for_tools_goes_on_after_a_restart_and_only_for_its_project(make_gateway, upstream, fake):
    gateway = make_gateway(more=PATTERNS)
    call = {"id": "call_0", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    asks = fake.reply(fake.completion(None, message={"tool_calls": [call]}, finish="tool_calls"))
    upstream.script("m-alpha", fake.text("first"))
    upstream.script("m-beta", asks, fake.text("second"))
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    messages = [{"role": "user", "content": "x"}]
    body = {"model": "pointsman-chain", "tools": tools}
    asked = gateway.client.post("/v1/chat/completions", json={**body, "messages": messages})
    message = asked.json()["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "seen"}
    gateway.stop()
    gateway.start()
    follow = {**body, "messages": [*messages, message, result]}
    other = {"authorization": f"Bearer {gateway.key(project='someone-else')}"}
    before = len(upstream.of("m-alpha"))
    foreign = gateway.client.post("/v1/chat/completions", json=follow, headers=other)
    assert gateway.record(foreign)["decision"]["flags"] is None and len(upstream.of("m-alpha")) == before + 1
    upstream.script("m-beta", fake.text("second"))
    answer = gateway.client.post("/v1/chat/completions", json=follow)
    assert answer.json()["choices"][0]["message"]["content"] == "second"
    assert len(upstream.of("m-alpha")) == before + 1, "the first step is not repeated"
    sent = upstream.of("m-beta")[-1].json["messages"]
    assert [sent[-1]["role"], sent[-1]["content"], sent[-1]["tool_call_id"]] == ["tool", "seen", "call_0"]
    gateway.close()


def test_a_gateway_that_stops_ends_the_tree_as_its_own_fault(make_gateway, upstream, fake):
    gateway = make_gateway(more=PATTERNS)
    upstream.script("m-alpha", fake.hang)
    ended = []

    def ask():
        with httpx.Client(base_url=gateway.url, timeout=20, trust_env=False) as client:
            body = {"model": "pointsman-chain", "messages": [{"role": "user", "content": "x"}]}
            ended.append(client.post("/v1/chat/completions", json=body))

    asking = threading.Thread(target=ask)
    asking.start()
    until = time.monotonic() + 10
    while not upstream.of("m-alpha") and time.monotonic() < until:
        time.sleep(0.01)
    gateway.stop()
    asking.join(10)
    assert ended[0].status_code == 503 and ended[0].json()["error"]["code"] == "stopping"
    record = gateway.record(ended[0])
    assert (record["outcome"]["status"], record["outcome"]["reason"]) == ("upstream_error", "the gateway stopped")
    assert all(node["outcome"] is not None for node in nodes(record["children"]))
    gateway.engine.dispose()


def newest_root(team):
    until = time.monotonic() + 3
    while True:
        team.ship()
        rows = team.sql(
            "SELECT d.id FROM decision d JOIN outcome o ON o.id = d.id "
            "WHERE d.kind = 'pattern' ORDER BY d.id DESC LIMIT 1"
        )
        if rows:
            return team.record(str(rows[0][0]))
        assert time.monotonic() < until
        time.sleep(0.05)
