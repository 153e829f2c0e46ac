"""The conductor's jobs on a database: traces of real runs, Parquet, a chain of three jobs, no signal, a server."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from uuid import UUID

import pytest
import torch

from distill.conductor import jobs as runners
from distill.conductor import rollouts, sampling
from distill.conductor.constraint import PlanConstraint, plan_regex
from distill.conductor.example import written
from distill.conductor.reading import read_traces
from distill.conductor.server import Planner, app
from distill.conductor.storing import fetch_folder
from distill.conductor.tiny import TinyConfig, make_tiny, sandbox_texts
from distill.conductor.traces import Trace, TraceConfig, examples_of, plan_of_turns
from harness.engine.deciders import ChainDeciders, Orchestrator
from harness.engine.engine import Engine, final
from harness.engine.learned import LearnedDeciders
from harness.engine.log import MemoryLog
from harness.engine.patterns.trinity import Trinity
from harness.engine.patterns.workflow import Workflow
from harness.engine.plan.grammar import Plan, Step, problems_of
from harness.engine.plan.parse import parse
from harness.engine.request import Request
from harness.routing.base import Ask
from harness.routing.chain import Chain
from harness.routing.default import DefaultRouter
from pointsman.identity import DEFAULT_PROJECT_ID as PROJECT
from pointsman.ids import new_id
from pointsman.sandbox import router_llm
from pointsman.tables import METADATA

WORLD = 21
SMALL = TinyConfig(vocabulary=700, width=32, layers=2, heads=2, inner=64, words=50)
PLAN = 'workers = ["A"]\nsubtasks = ["Do the request."]\naccess = ["none"]'


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


async def ran(scene, policy, task):
    """One request by a pattern, with the stand-in as conductor; its rows."""

    async def lm(body):
        reply = router_llm.reply(body["messages"])
        return {
            "choices": [{"message": {"content": reply.text}}],
            "usage": {"prompt_tokens": 100, "completion_tokens": len(reply.tokens)},
        }

    deciders = ChainDeciders(
        Chain([DefaultRouter()], lambda: 0.0), epsilon=0.0,
        orchestrator=Orchestrator(lm, "stand-in", rollouts.CONDUCTOR_PRICE, roles=True),
    )  # fmt: skip
    log = MemoryLog()
    messages = [{"role": "user", "content": task.prompt}]
    request = Request(new_id(), PROJECT, new_id(), new_id(), messages, Ask(task.prompt, "Be brief."), seed=3)
    await final(Engine(scene.pool, scene.workers, deciders, log).run(policy, request))
    return request, log


@pytest.fixture
def logged(engine, empty_database):
    """Two workflows and a trinity in the log, the second workflow with a bad reward."""
    scene = rollouts.sandbox_scene(WORLD, "truthful")
    exam = sampling.exam(WORLD, "train", 3, ["two_step"])
    policies = [Workflow(), Workflow(), Trinity()]
    runs = [asyncio.run(ran(scene, policy, task)) for policy, task in zip(policies, exam, strict=True)]
    now = datetime.now(UTC)
    tables = METADATA.tables
    pool = {worker.name: {"endpoint": "e", "card": worker.card_hash, "price": "p"} for worker in scene.pool.workers}
    with engine.begin() as connection:

        def insert(table, rows):
            known = tables[table].c
            for row in rows:
                connection.execute(tables[table].insert().values({k: v for k, v in row.items() if k in known}))

        insert("pool_snapshot", [{"hash": "pool", "content": pool, "created_at": now}])
        cards = [{"hash": w.card_hash, "worker": w.name, "text": w.card, "created_at": now} for w in scene.pool.workers]
        insert("card", cards)
        for (request, log), value in zip(runs, (1.0, 0.0, 1.0), strict=True):
            text = request.messages[0]["content"]
            insert("request", [{"id": request.id, "project_id": PROJECT, "received_at": now, "text": text}])
            insert("decision", [row | {"pool_hash": "pool", "decided_at": now} for row in log.decisions])
            insert("call", log.calls)
            insert("outcome", [row | {"ended_at": now} for row in log.outcomes])
            root = {"spec_hash": "spec", "outcome_id": request.root_id, "decision_id": request.root_id, "value": value,
                    "project_id": PROJECT, "origin": "traffic", "source": "feedback", "terms": {}, "computed_at": now,
                    "closed": False}  # fmt: skip
            insert("reward", [root])
    return SimpleNamespace(scene=scene, exam=exam, runs=runs)


def test_logged_workflows_and_trinities_become_examples_that_serving_reads(engine, logged):
    with engine.connect() as connection:
        traces = read_traces(connection, PROJECT, "spec")
        assert read_traces(connection, new_id(), "spec") == read_traces(connection, PROJECT, "other") == []
    assert [trace.reward for trace in traces] == [1.0, 0.0, 1.0]
    cards = {worker.name: worker.card for worker in logged.scene.pool.workers}
    assert traces[0].cards == cards and traces[0].context == "Be brief." and traces[0].cost > 0
    assert traces[0].plan is not None and [role for _, role in traces[2].turns][:2] == ["thinker", "solver"]
    made, left_out = examples_of(traces, TraceConfig(shows=4))
    assert left_out == {"ended badly": 1} and len(made) == 8
    prompts = {json.dumps(one.prompt) for one in made}
    assert len(prompts) > 5 and all(one.weight == pytest.approx(1 / 4) for one in made)
    for one in made:
        shown = [line for line in one.prompt[0]["content"].split("\n") if line[:2] in {f"{c} " for c in "ABCDEFG"}]
        letters = {line[0]: next(name for name, card in cards.items() if card in line) for line in shown}
        assert parse(one.completion, letters).status == "ok"
    assert "Do part 1 of the request." in made[0].completion


def test_turns_become_a_plan_that_may_run():
    turns = [("ada", "thinker"), ("bob", "solver"), ("cyd", "verifier"), ("bob", "solver"), ("cyd", "verifier")]
    plan = plan_of_turns(turns)
    assert [step.worker for step in plan.steps] == ["ada", "bob", "cyd", "bob"]
    assert problems_of(plan, ["ada", "bob", "cyd"]) == []
    assert plan_of_turns([("ada", "thinker")]).steps == () and len(plan_of_turns(turns, 2).steps) == 2


def test_a_trace_whose_worker_is_gone_is_left_out():
    plan = Plan((Step("gone", "x"),)).as_json()
    trace = Trace("x", "", {"ada": "card"}, 1.0, 0.0, plan)
    assert examples_of([trace], TraceConfig()) == ([], {"not a plan that serving reads": 1})


def test_a_chain_of_jobs_ends_in_a_conductor_that_serves(run_job, engine, tmp_path, monkeypatch):
    monkeypatch.setattr(runners, "TinyConfig", lambda seed: replace(SMALL, seed=seed))
    sandbox = {"world": WORLD, "cards": "truthful", "families": ["one_skill"]}
    data = run_job("conductor_data", {"source": "sandbox", "tasks": 12, "assignments": 1, **sandbox}, PROJECT)
    assert data.state == "done" and data.result["examples"] > 5, data.reason
    params = {"data": data.id[:13], "base": "tiny", "tuning": "full", "learning_rate": 0.01, "three_rates": False,
              "steps": 90, "batch": 4, "look_every": 90, "validation": 2, **sandbox}  # fmt: skip
    fitted = run_job("conductor_sft", params, PROJECT)
    assert fitted.state == "done", fitted.reason
    assert not (run_job.place.settings.home / "conductor" / fitted.id).exists()
    params = {"start": fitted.id, "tasks": 10, "steps": 2, "groups": 3, "generations": 6, "validation": 2,
              "patience": 5, "look_every": 2, **sandbox}  # fmt: skip
    trained = run_job("conductor_grpo", params, PROJECT)
    assert trained.state == "done", trained.reason
    assert trained.result["rollouts"] == 36 and trained.result["form"] == "short"
    folder = fetch_folder(engine, run_job.place.files(), trained.id, tmp_path / "fetched")
    planner = Planner(folder, constrained=True)
    assert asyncio.run(_served_plan(planner)) == 0

    refused = run_job("conductor_sft", {"data": fitted.id}, PROJECT)
    assert refused.state == "failed" and "no conductor_data jobs begin with" in refused.reason


def test_a_pool_whose_workers_are_all_right_ends_a_job_skipped(run_job, engine, tmp_path, monkeypatch):
    async def right(name, messages, tools):
        return "Answer: right"

    def saturated(world, cards, **settings):
        scene = rollouts.sandbox_scene(world, cards, **settings)
        return replace(scene, workers=rollouts.LocalWorkers(right))

    monkeypatch.setattr(runners, "sandbox_scene", saturated)
    monkeypatch.setattr(runners, "job_of", lambda *_: "start")
    monkeypatch.setattr(runners, "fetch_folder", lambda engine, files, job, folder: tmp_path)
    (tmp_path / "conductor.json").write_text('{"form": "short"}')
    ended = run_job("conductor_grpo", {"start": "12345678", "tasks": 6, "world": WORLD}, PROJECT)
    assert (ended.state, ended.reason) == ("skipped", "no_signal")


async def _served_plan(planner):
    """A workflow whose conductor is asked over the server's API; how often the prompted one had to stand in."""
    from starlette.testclient import TestClient

    client = TestClient(app(planner))

    async def lm(body):
        return (await asyncio.to_thread(client.post, "/v1/chat/completions", json=body)).json()

    async def prompted(body):
        return {"choices": [{"message": {"content": router_llm.reply(body["messages"]).text}}]}

    scene = rollouts.sandbox_scene(WORLD, "truthful")
    inner = ChainDeciders(
        Chain([DefaultRouter()], lambda: 0.0), epsilon=0.0, orchestrator=Orchestrator(prompted, "prompted")
    )
    deciders = LearnedDeciders(inner, Orchestrator(lm, planner.name))
    task = sampling.exam(WORLD, "train", 1, ["one_skill"])[0]
    log = MemoryLog()
    messages = [{"role": "user", "content": task.prompt}]
    request = Request(new_id(), PROJECT, new_id(), new_id(), messages, Ask(task.prompt))
    await final(Engine(scene.pool, scene.workers, deciders, log).run(Workflow(), request))
    plan = next(row for row in log.decisions if row["kind"] == "delegate")
    assert plan["plan"] is not None and plan["router_input_tokens"] > 0
    assert client.get("/v1/models").json()["data"][0]["id"] == planner.name
    for body, said in (
        ({"messages": []}, "messages"), ({"messages": messages, "stream": True}, "stream"),
        ({"messages": messages, "temperature": 9}, "temperature"), ({"messages": messages, "max_tokens": 0}, "max_tok"),
    ):  # fmt: skip
        reply = client.post("/v1/chat/completions", json=body)
        assert reply.status_code == 400 and said in reply.json()["error"]["message"]
    assert client.post("/v1/chat/completions", content=b"{").status_code == 400
    return deciders.fallbacks


def test_a_constrained_model_that_learnt_nothing_still_writes_plans(tmp_path):
    from distill.conductor.checking import load_causal
    from distill.conductor.generating import generate

    folder = make_tiny(tmp_path, SMALL, sandbox_texts([WORLD], 20))
    model, tokenizer, _ = load_causal(str(folder))
    prompts = [[{"role": "user", "content": "hello"}]] * 2
    torch.manual_seed(1)
    said = generate(model, tokenizer, prompts, max_new=60, temperature=1.0, constrained=True)
    for one in said:
        assert one.text.startswith('workers = ["')
    free = generate(model, tokenizer, prompts, max_new=5, temperature=0.0)
    assert not free[0].text.startswith("workers")


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        (PLAN, True),
        (written(Plan((Step("a", 'Say "hi"\n'), Step("b", "é", (1,)))), {"A": "a", "B": "b"}), True),
        (PLAN.replace('"A"', '"C"'), False),
        (PLAN.replace('"none"', "[1]"), False),
        (PLAN.replace('"A"', '"A", "B"'), False),
        (PLAN + " and more", False),
    ],
)
def test_the_grammars_expression_takes_plans_and_nothing_else(text, fits):
    import regex

    pattern = regex.compile(plan_regex("AB"))
    assert (pattern.fullmatch(text) is not None) == fits
    if fits:
        assert all(pattern.fullmatch(text[:n], partial=True) for n in range(len(text)))


def test_the_constraint_ends_a_row_that_has_ended():
    class Tokens:
        eos_token_id = 0

        def decode(self, ids, **_):
            return "".join(PLAN if one == 1 else "x" for one in ids)

    scores = torch.tensor([[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    allowed = PlanConstraint(Tokens(), 1, "AB")(torch.tensor([[9, 1], [9, 0]]), scores)
    assert allowed[:, 0].tolist() == [0.0, 0.0] and torch.isinf(allowed[:, 1:]).all()
    assert UUID(PROJECT)
