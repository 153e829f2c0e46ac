"""Teams on the sandbox over real HTTP: the stand-in plans and chooses roles, workers obey what the engine writes."""

from __future__ import annotations

import statistics
import time

import aiohttp
import msgspec
import pytest

from harness.engine.deciders import ChainDeciders, Orchestrator
from harness.engine.engine import Engine, final
from harness.engine.events import Done
from harness.engine.log import MemoryLog
from harness.engine.patterns.roles import ABOUT, TRIO, Scene, messages_for
from harness.engine.patterns.trinity import Trinity
from harness.engine.patterns.workflow import Workflow
from harness.engine.plan.parse import parse
from harness.engine.request import Request
from harness.routing.base import Ask
from harness.routing.chain import Chain
from harness.routing.default import DefaultRouter
from harness.routing.prompted import PromptedRouter
from harness.routing.template import default_template
from pointsman.config.model import WorkerConfig
from pointsman.ids import new_id
from pointsman.pool import Pool, Worker
from pointsman.sandbox import instructions
from pointsman.sandbox.serve import serving
from pointsman.sandbox.setup import worker_configs
from pointsman.sandbox.team_tasks import team_tasks
from pointsman.sandbox.truth import truth
from pointsman.verifiers import verify

SEED = 2001


@pytest.fixture(scope="module")
def base():
    with serving(SEED) as url:
        yield url


@pytest.fixture
async def sandbox(base, over_http):
    """An engine over the sandbox's workers, with its stand-in as router and orchestrator, all by HTTP."""
    entries = worker_configs(SEED, f"{base}/v1", "truthful")
    pool = Pool(tuple(Worker.of(WorkerConfig.model_validate(entry)) for entry in entries))
    one = over_http(base, pool=pool)
    async with aiohttp.ClientSession(base) as session:

        async def lm(body):
            one.prompts.append(body["messages"])
            async with session.post("/v1/chat/completions", json=body) as reply:
                return await reply.json()

        cards = {worker.name: worker.card for worker in pool.workers}
        router = PromptedRouter(default_template(), lm, model="stand-in-router", cards=cards, deadline=10)
        chain = Chain([router, DefaultRouter()], time.monotonic)
        asked = Orchestrator(lm, "stand-in-router", roles=True)
        deciders = ChainDeciders(chain, epsilon=0.0, orchestrator=asked)
        one.engine = lambda: Engine(pool, one.workers, deciders, one.log, memory=one.memory)
        yield one
        await session.delete("/faults")


def request_of(task):
    messages = [{"role": "user", "content": task.prompt}]
    return Request(new_id(), new_id(), new_id(), new_id(), messages, Ask(task.prompt), seed=3)


async def share_right(one, policy, exam):
    right = []
    for task in exam:
        done = await final(one.engine().run(policy, request_of(task)))
        assert isinstance(done, Done), done
        right.append(verify(task.verifier, done.answer or ""))
    return statistics.mean(right)


def best_single(exam):
    """The success probability of the best single worker over an exam."""
    table = truth(SEED)
    return max(statistics.mean(table.probability(name, task.skills) for task in exam) for name in table.success)


async def test_a_workflow_gives_each_part_to_whoever_is_good_at_it(sandbox):
    exam = list(team_tasks(SEED, "held_out", 40, ["two_step"]))
    assert await share_right(sandbox, Workflow(), exam) >= best_single(exam) + 0.15
    plans = [row["plan"]["steps"] for row in sandbox.log.decisions if row["kind"] == "delegate"]
    assert all(len(steps) == 2 and steps[1]["access"] == [1] for steps in plans)
    assert {row["parse_status"] for row in sandbox.log.decisions if row["kind"] == "delegate"} == {"ok"}


async def test_a_trinity_thinks_solves_and_verifies_better_than_one_worker(sandbox):
    exam = list(team_tasks(SEED, "held_out", 40, ["two_step"]))
    assert await share_right(sandbox, Trinity(), exam) >= best_single(exam) + 0.1
    roles = [row["role"] for row in sandbox.log.decisions if row["kind"] == "role"]
    assert roles[:3] == ["thinker", "solver", "verifier"]
    reasons = {row["reason"] for row in sandbox.log.outcomes}
    assert {"accept", "revise", "accepted"} <= reasons


async def test_three_errands_run_beside_each_other_and_are_put_together(sandbox):
    (task,) = team_tasks(SEED, "held_out", 1, ["errands"])
    done = await sandbox.run(Workflow(), request_of(task))
    assert done.answer.count(";") == 2
    steps = next(row["plan"]["steps"] for row in sandbox.log.decisions if row["kind"] == "delegate")
    assert [step["access"] for step in steps] == [[], [], [], "all"]


async def test_one_worker_down_in_the_middle_of_a_real_workflow(sandbox, base):
    exam = list(team_tasks(SEED, "train", 4, ["two_step"]))
    done = await sandbox.run(Workflow(), request_of(exam[0]))
    down = next(row["chosen"] for row in sandbox.log.decisions if row["step"] == 2)
    async with aiohttp.ClientSession(base) as session:
        await session.post("/faults", json={"worker": down, "fault": "500"})
        sandbox.log = MemoryLog()
        done = await sandbox.run(Workflow(), request_of(exam[0]), stream=True)
    assert isinstance(done, Done) and done.answer
    step = next(row for row in sandbox.log.decisions if row["step"] == 2)
    outcome = next(row for row in sandbox.log.outcomes if row["id"] == step["id"])
    assert step["chosen"] == down != outcome["worker"]


async def test_a_client_side_tool_of_a_sandbox_worker_comes_back_to_its_step(sandbox):
    tool = {"type": "function", "function": {"name": "get_weather", "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}}}}}  # fmt: skip
    messages = [{"role": "user", "content": "Please get_weather for Lisbon."}]
    request = Request(
        new_id(), sandbox.project, sandbox.episode, new_id(), messages, Ask("Please get_weather for Lisbon.")
    )
    tooled = Pool(tuple(worker for worker in sandbox.pool.workers if "tools" in worker.capabilities))
    made = sandbox.engine()
    sandbox.engine = lambda: Engine(tooled, made.workers, made.deciders, made.log, memory=made.memory)
    done = await sandbox.run(Workflow(), msgspec.structs.replace(request, fields={"tools": [tool]}))
    (call,) = done.tool_calls
    assert call["function"] == {"name": "get_weather", "arguments": '{"city": "Lisbon"}'}
    state = await sandbox.engine().suspended(sandbox.project, [call["id"]])
    done = await sandbox.resume(Workflow(), state, {call["id"]: "21 degrees"})
    assert done.answer == "The tool returned: 21 degrees"


def test_the_sandbox_reads_what_the_engine_writes_for_a_role():
    asked = [{"role": "user", "content": "The question."}]
    _thinker, solver, verifier = TRIO
    scene = Scene(latest="Answer: 7", suggestion="Begin with the first part: it comes to 5. What is left: more")
    read = {
        role.name: instructions.read(messages_for(role, asked, scene, scored=False)[-1]["content"]) for role in TRIO
    }
    assert {name: told.role for name, told in read.items()} == {name: name for name in ABOUT}
    assert all(told.request == "The question." for told in read.values())
    assert read[verifier.name].latest == "Answer: 7" and not read[verifier.name].scored
    assert read[solver.name].found == "5"
    assert instructions.read(messages_for(verifier, asked, scene, scored=True)[-1]["content"]).scored
    assert instructions.read("The question.").plain


async def test_the_stand_ins_plan_is_one_that_the_parser_takes(sandbox):
    for task in team_tasks(SEED, "train", 6):
        await sandbox.run(Workflow(), request_of(task))
    replies = [row for row in sandbox.log.decisions if row["kind"] == "delegate"]
    letters = dict(zip("ABCDEFG", replies[0]["card_order"], strict=False))
    assert parse(replies[0]["raw_reply"], letters).problems == ()
    assert len(replies) == 6
