"""Workflows: isolation, independent steps at once, mending and doing without a plan, rounds, gates."""

from __future__ import annotations

import asyncio
import time

import pytest

from harness.engine.events import Decided, Delta, Done, Failed, Progress
from harness.engine.patterns.workflow import Workflow, WorkflowSettings
from harness.engine.plan.grammar import Plan, Step
from pointsman.errors import UpstreamError

EMPTY = "workers = []\nsubtasks = []\naccess = []"


def fixed(*steps, **settings):
    return Workflow(WorkflowSettings(fixed=Plan(steps), **settings), "chain")


async def test_steps_run_as_planned_and_the_last_answers(team, kit):
    one = team(lambda name, text: f"{name} did it", plans=[kit.plan(("ada", "SUB1", "none"), ("cyd", "SUB2", "all"))])
    done = await one.run(Workflow(), one.request("The question."))
    assert (done.answer, done.reason, done.worker) == ("cyd did it", "planned", "cyd")
    assert [worker for worker, _ in one.seen] == ["ada", "cyd"]
    root, plan, first, second = one.log.decisions
    assert plan["parent_id"] == root["id"]
    assert first["parent_id"] == second["parent_id"] == plan["id"]
    assert (plan["kind"], plan["parse_status"], plan["chosen"]) == ("delegate", "ok", None)
    assert "probabilities" not in plan  # a prompted conductor has no propensities
    assert [step["subtask"] for step in plan["plan"]["steps"]] == ["SUB1", "SUB2"]
    assert plan["raw_reply"].startswith("workers = ")
    assert sorted(plan["card_order"]) == ["ada", "bob", "cyd"]
    assert [(row["kind"], row["chosen"], row["propensity"], row["forced"], row["step"]) for row in (first, second)] == [
        ("route", "ada", 1.0, "plan", 1), ("route", "cyd", 1.0, "plan", 2),
    ]  # fmt: skip
    assert [call["purpose"] for call in one.log.calls] == ["route", "serve", "serve"]


async def test_a_worker_sees_the_request_its_subtask_and_what_its_access_names_and_nothing_else(team, kit):
    """The proof of isolation: every step's output and subtask has a mark, and each context holds exactly its own."""
    steps = [
        ("ada", "SUB1", "none"), ("bob", "SUB2", "none"), ("cyd", "SUB3", [1]), ("ada", "SUB4", [2]),
        ("bob", "SUB5", [3, 4]),
    ]  # fmt: skip

    def said(name, text):
        return f"OUT{text[-1]}"

    one = team(said, plans=[kit.plan(*steps)])
    messages = [{"role": "system", "content": "SYSTEM"}, {"role": "user", "content": "REQUEST"}]
    done = await one.run(Workflow(), one.request("REQUEST", messages=messages))
    assert done.answer == "OUT5"
    marks = [f"{word}{number}" for word in ("SUB", "OUT") for number in range(1, 6)]
    seen = {}
    for call in one.log.calls:
        if call["purpose"] == "serve":
            whole = str(call["messages"])
            assert "SYSTEM" in whole and "REQUEST" in whole
            seen[call["messages"][-1]["content"][-1]] = {mark for mark in marks if mark in whole}
    assert seen == {
        "1": {"SUB1"}, "2": {"SUB2"}, "3": {"SUB3", "SUB1", "OUT1"}, "4": {"SUB4", "SUB2", "OUT2"},
        "5": {"SUB5", "SUB3", "OUT3", "SUB4", "OUT4"},
    }  # fmt: skip
    logged = {call["messages"][-1]["content"] for call in one.log.calls if call["purpose"] == "serve"}
    assert logged == set(one.texts())  # what the log has is what was sent


async def test_a_request_with_parts_keeps_them(team, kit):
    one = team(lambda name, text: "x", plans=[kit.plan(("ada", "SUB", "none"))])
    parts = [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
    await one.run(Workflow(), one.request("Look:", messages=[{"role": "user", "content": parts}]))
    content = one.seen[0][1][0]["content"]
    assert content[:2] == parts
    assert content[2]["type"] == "text" and "SUB" in content[2]["text"]


async def test_five_independent_steps_run_at_the_same_time(team, kit):
    """Each step waits until all five have begun: one after another, none would ever end."""
    begun, all_there = [], asyncio.Event()
    spans = {}

    async def said(name, text):
        key, started = text[-1], time.perf_counter()
        if key in "12345":
            begun.append(key)
            if len(begun) == 5:
                all_there.set()
            async with asyncio.timeout(20):
                await all_there.wait()
        spans[key] = (started, time.perf_counter())
        return f"OUT{key}"

    names = ("ada", "bob", "cyd", "ada", "bob")
    steps = [(name, f"SUB{number}", "none") for number, name in enumerate(names, 1)]
    one = team(said, plans=[kit.plan(*steps, ("cyd", "SUB6", "all"))])
    done = await one.run(Workflow(WorkflowSettings(max_steps=6)))
    assert done.answer == "OUT6"
    assert max(spans[key][0] for key in "12345") < min(spans[key][1] for key in "12345")
    assert spans["6"][0] >= max(spans[key][1] for key in "12345")


async def test_a_step_begins_as_soon_as_what_it_reads_is_there(team, kit):
    order = []
    third_begun = asyncio.Event()

    async def said(name, text):
        key = text[-1]
        order.append(f"begin {key}")
        if key == "2":
            async with asyncio.timeout(20):
                await third_begun.wait()  # the slow one ends only after the third, which does not need it, began
        if key == "3":
            third_begun.set()
        order.append(f"end {key}")
        return "x"

    steps = [("ada", "SUB1", "none"), ("bob", "SUB2", "none"), ("cyd", "SUB3", [1]), ("ada", "SUB4", [2, 3])]
    one = team(said, plans=[kit.plan(*steps)])
    await one.run(Workflow())
    assert order.index("begin 3") < order.index("end 2")


async def test_the_last_output_that_is_not_empty_is_the_answer(team, kit):
    def said(name, text):
        return {"1": "one", "2": "two", "3": "  "}[text[-1]]

    one = team(said, plans=[kit.plan(("ada", "SUB1", "none"), ("bob", "SUB2", [1]), ("cyd", "SUB3", "all"))])
    done = await one.run(Workflow(), stream=True)
    assert (done.answer, done.worker) == ("two", "bob")


async def test_a_worker_down_in_the_middle_leaves_the_rest_to_the_others(team, kit):
    def said(name, text):
        return UpstreamError("server", "HTTP 500") if text.endswith("SUB2") else text[-4:]

    one = team(said, plans=[kit.plan(("ada", "SUB1", "none"), ("bob", "SUB2", "none"), ("cyd", "SUB3", "all"))])
    done = await one.run(Workflow())
    assert done.answer == "SUB3"
    assert "(nothing)" in one.texts("cyd")[0]
    statuses = {row["reason"]: row["status"] for row in one.log.outcomes if row["worker"] == "bob"}
    assert statuses == {"HTTP 500": "upstream_error"}


async def test_a_bad_plan_goes_back_with_what_is_wrong(team, kit):
    bad = kit.plan(("ada", "SUB1", [2]), ("bob", "SUB2", "all"))
    one = team(lambda name, text: "x", plans=[f"Well...\n{bad}", kit.plan(("ada", "SUB", "none"))])
    done = await one.run(Workflow())
    assert done.reason == "planned"
    assert "its access list names step 2, expected only earlier steps" in one.prompts[1][1]["content"]
    first, second = [row for row in one.log.decisions if row["kind"] == "delegate"]
    assert (first["parse_status"], second["parse_status"]) == ("unknown", "ok")
    assert first.get("plan") is None
    reason = next(row["reason"] for row in one.log.outcomes if row["id"] == first["id"])
    assert "expected only earlier steps" in reason


@pytest.mark.parametrize("reply", [
    "I cannot plan.", "", None, "workers = ['nobody']\nsubtasks = ['x']\naccess = ['none']",
    f"workers = {['A'] * 50}\nsubtasks = {['x'] * 50}\naccess = {['all'] * 50}", "```\nworkers = [\n```",
    UpstreamError("server", "down"), TimeoutError(),
])  # fmt: skip
async def test_without_a_plan_that_may_run_one_worker_answers(team, reply):
    one = team(lambda name, text: f"{name} alone", plans=[reply, reply])
    done = await one.run(Workflow(), one.request("ask bob"))
    assert (done.answer, done.reason) == ("bob alone", "single: no plan could be carried out")
    assert one.seen[0][1] == [{"role": "user", "content": "ask bob"}]
    assert one.log.decisions[-1]["kind"] == "route" and one.log.decisions[-1]["forced"] is None
    failed = isinstance(reply, Exception)
    assert len(one.prompts) == (1 if failed else 2)  # a conductor that is down is not asked to mend its plan


async def test_without_a_conductor_one_worker_answers(team):
    one = team(lambda name, text: "alone")
    done = await one.run(Workflow())
    assert done.answer == "alone"
    assert one.log.decisions[1]["fail_open"] == ["orchestrator:no_orchestrator"]


async def test_the_conductor_is_shown_cards_by_letter_and_no_names(team, kit):
    one = team(lambda name, text: "x", plans=[kit.plan(("ada", "SUB", "none"))])
    await one.run(Workflow(), one.request("The question."))
    _system, user = one.prompts[0]
    assert '"option": "A"' in user["content"] and "Card of ada." in user["content"]
    assert '"The question."' in user["content"]
    assert "at most 5 steps" in user["content"]


async def test_the_conductor_looks_at_the_result_and_plans_once_more(team, kit):
    def said(name, text):
        return f"OUT{text[-1]}"

    plans = [kit.plan(("ada", "SUB1", "none")), kit.plan(("bob", "SUB2", "none"), ("cyd", "SUB3", "all"))]
    one = team(said, plans=list(plans))
    done = await one.run(Workflow(WorkflowSettings(rounds=2)))
    assert (done.answer, done.reason) == ("OUT3", "planned")
    again = one.prompts[1][1]["content"]
    assert "OUT1" in again and "three empty lists" in again
    assert "OUT1" not in one.texts("bob")[0]  # access none: nothing of the round before either
    assert "OUT1" in one.texts("cyd")[0] and "OUT2" in one.texts("cyd")[0]
    stop = next(row for row in one.log.decisions if row["kind"] == "stop")
    assert (stop["chosen"], stop["turn"]) == ("plan", 1)
    assert [row["turn"] for row in one.log.decisions if row["kind"] == "route"] == [0, 1, 1]
    assert len(one.prompts) == 2  # the depth of recursion is bounded


async def test_an_empty_plan_returns_the_answer_before_it(team, kit):
    one = team(lambda name, text: "good", plans=[kit.plan(("ada", "SUB1", "none")), EMPTY])
    done = await one.run(Workflow(WorkflowSettings(rounds=3)))
    assert (done.answer, done.reason) == ("good", "returned")
    assert [row["chosen"] for row in one.log.decisions if row["kind"] == "stop"] == ["stop"]


async def test_an_empty_first_plan_is_none(team):
    one = team(lambda name, text: "alone", plans=[EMPTY, EMPTY])
    done = await one.run(Workflow(WorkflowSettings(rounds=3)))
    assert done.reason == "single: no plan could be carried out"


async def test_a_bad_second_plan_keeps_the_first_answer(team, kit):
    one = team(lambda name, text: "good", plans=[kit.plan(("ada", "SUB1", "none")), "no idea", "no idea"])
    done = await one.run(Workflow(WorkflowSettings(rounds=2)))
    assert (done.answer, done.reason) == ("good", "returned: no further plan could be carried out")


async def test_only_the_last_step_of_the_last_round_is_streamed(team, kit):
    one = team(lambda name, text: text[-4:], plans=[kit.plan(("ada", "SUB1", "none"), ("bob", "SUB2", "all"))])
    await one.run(Workflow(), stream=True)
    assert [event.text for event in one.of(Delta)] == ["SUB2"]
    kinds = [type(event) for event in one.events]
    assert kinds.index(Progress) < kinds.index(Delta)
    assert [event.text for event in one.of(Progress)] == ["planning", "step 1 of 2: SUB1", "step 2 of 2: SUB2"]


async def test_prompt_chaining_is_a_fixed_plan_with_gates(team):
    one = team(lambda name, text: "a DRAFT" if text.endswith("Draft it.") else "polished")
    chain = fixed(Step("ada", "Draft it.", gate="DRAFT"), Step("bob", "Polish it.", "all"))
    done = await one.run(chain)
    assert (done.answer, done.reason) == ("polished", "planned")
    gate = next(row for row in one.log.decisions if row["kind"] == "stop")
    assert (gate["chosen"], gate["eligible"], gate["forced"], gate["step"]) == ("go", {"go": None}, "rule", 1)
    assert one.log.decisions[1]["plan"]["steps"][0]["gate"] == "DRAFT"
    assert one.log.decisions[0]["chosen"] == "chain"
    assert one.prompts == []


async def test_a_gate_that_is_not_passed_ends_the_chain(team):
    def said(name, text):
        return "fine" if text.endswith("First.") else "no good"

    one = team(said)
    chain = fixed(Step("ada", "First."), Step("bob", "Second.", "all", gate="^OK"), Step("cyd", "Third.", "all"))
    done = await one.run(chain)
    assert (done.answer, done.reason) == ("fine", "gate of step 2")
    assert [worker for worker, _ in one.seen] == ["ada", "bob"]


async def test_sectioning_is_a_fixed_plan_whose_parts_see_nothing_and_may_be_routed(team):
    one = team(lambda name, text: f"by {name}")
    done = await one.run(
        fixed(Step(None, "Part for bob."), Step(None, "Part for cyd."), Step("ada", "Join them.", "all"))
    )
    assert done.answer == "by ada"
    routed = [event for event in one.of(Decided) if event.kind == "route"]
    assert [event.chosen for event in routed] == ["bob", "cyd", "ada"]
    assert one.router.asked[0].text == "Part for bob."
    assert one.log.decisions[2]["scores"] is not None


async def test_no_output_at_all_is_a_failure(team, kit):
    one = team(lambda name, text: " ", plans=[kit.plan(("ada", "SUB1", "none"))])
    failed = await one.run(Workflow())
    assert isinstance(failed, Failed) and not isinstance(failed, Done)
    assert (failed.reason, failed.fault.message) == ("no output", "no worker gave an answer (no output)")
