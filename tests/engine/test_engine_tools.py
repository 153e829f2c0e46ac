"""Tool calls from inside a team: out to the client, back to the step that asked, remembered and not asked again."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from harness.engine.acts import Act, Call, End, Named, Policy
from harness.engine.events import Decided, Done
from harness.engine.exchange import results_in
from harness.engine.log import MemoryLog
from harness.engine.memory import Item
from harness.engine.patterns.trinity import Trinity
from harness.engine.patterns.workflow import Workflow
from harness.engine.state import decode_state, encode_state
from pointsman.ids import new_id

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


def asking(kit, **answers):
    """Workers that look something up when their subtask says so, and tell what they were given."""

    def said(name, text):
        if text.endswith(("look1", "look2")):
            return kit.calls("look", "call_0", place=text[-1])
        if text in answers:
            return f"{name} read {answers[text]}"
        return f"{name}: {text[-60:]}"

    return said


@pytest.fixture
async def waiting(team, kit):
    """A workflow whose two first steps wait for a tool at the same time; the third puts them together."""
    steps = [("ada", "please look1", "none"), ("bob", "please look2", "none"), ("cyd", "Join.", "all")]
    one = team(asking(kit, R1="R1", R2="R2"), plans=[kit.plan(*steps)])
    one.done = await one.run(Workflow(), one.request(fields={"tools": [TOOL]}))
    return one


async def test_the_calls_of_all_steps_go_out_together_under_ids_of_their_own(waiting):
    done = waiting.done
    assert isinstance(done, Done)
    assert (done.answer, done.reason, done.finish_reason) == (None, "tool_calls", "tool_calls")
    assert [call["function"]["arguments"] for call in done.tool_calls] == ['{"place": "1"}', '{"place": "2"}']
    ids = [call["id"] for call in done.tool_calls]
    assert len(set(ids)) == 2 and "call_0" not in ids  # both workers said call_0
    assert [row["status"] for row in waiting.log.outcomes] == ["ok"] * 4
    assert [row["reason"] for row in waiting.log.outcomes].count("tool_calls") == 3


async def test_results_resume_the_right_steps_and_the_workflow_goes_on(waiting):
    first, second = [call["id"] for call in waiting.done.tool_calls]
    state = await waiting.engine().suspended(waiting.project, [second])
    waiting.seen.clear()
    waiting.log = MemoryLog()
    done = await waiting.resume(Workflow(), state, {second: "R2", first: "R1"})
    assert done.reason == "planned"
    contexts = dict(waiting.seen)
    _ask, call, result = contexts["ada"][-3:]
    assert call["tool_calls"][0]["id"] == "call_0"  # the worker's own id goes back to it
    assert result == {"role": "tool", "tool_call_id": "call_0", "content": "R1"}
    assert "R2" not in str(contexts["ada"]) and "R1" not in str(contexts["bob"])
    assert "ada read R1" in contexts["cyd"][-1]["content"] and "bob read R2" in contexts["cyd"][-1]["content"]
    root, *below = waiting.log.decisions
    assert (root["forced"], root["flags"]) == ("sticky", ["resumed"])
    assert [(row["chosen"], row["forced"], row["step"]) for row in below] == [
        ("ada", "sticky", 1), ("bob", "sticky", 2), ("cyd", "plan", 3),
    ]  # fmt: skip
    assert {row["request_id"] for row in waiting.log.decisions} == {root["request_id"]}
    assert {row["parent_id"] for row in below} == {root["id"]}  # the plan's decision is of the earlier request
    assert len(waiting.of(Decided)) == 3


async def test_a_result_that_does_not_come_back_is_said_to_be_missing(waiting):
    first, _second = [call["id"] for call in waiting.done.tool_calls]
    state = await waiting.engine().suspended(waiting.project, [first])
    waiting.seen.clear()
    extra = [{"role": "user", "content": "And hurry."}]
    await waiting.resume(Workflow(), state, {first: "R1"}, extra=extra)
    ada, bob = (messages for name, messages in waiting.seen if name in ("ada", "bob"))
    assert ada[-2]["content"] == "R1" and ada[-1] == extra[0]
    assert bob[-2]["content"] == "(the client gave no result for this call)"


async def test_another_projects_ids_find_nothing(waiting):
    ids = [call["id"] for call in waiting.done.tool_calls]
    assert await waiting.engine().suspended("00000000-0000-7000-8000-000000000000", ids) is None
    assert await waiting.engine().suspended(waiting.project, ["call_0"]) is None


async def test_a_waiting_run_is_text_and_back(waiting):
    state = await waiting.engine().suspended(waiting.project, [waiting.done.tool_calls[0]["id"]])
    again = decode_state(encode_state(state))
    assert again == state
    assert [node.key for node in again.waiting] == ["step:0:1", "step:0:2"]
    assert set(again.tool_call_ids()) == {call["id"] for call in waiting.done.tool_calls}


async def test_a_state_of_another_version_is_none(waiting):
    memory, ids = waiting.memory, [call["id"] for call in waiting.done.tool_calls]
    item = await memory.waiting(waiting.project, ids)
    await memory.forget(waiting.project, [item.id])
    await memory.keep([msgspec.structs.replace(item, content={"nodes": 3})])
    assert await waiting.engine().suspended(waiting.project, ids) is None


async def test_resuming_twice_is_the_same_again(waiting):
    ids = [call["id"] for call in waiting.done.tool_calls]
    answers = []
    for _ in range(2):  # a client that lost the answer sends its results once more
        state = await waiting.engine().suspended(waiting.project, ids)
        answers.append((await waiting.resume(Workflow(), state, dict.fromkeys(ids, "R1"))).answer)
    assert answers[0] == answers[1]


async def test_a_step_may_ask_several_times(team, kit):
    replies = iter([kit.calls("look", "a"), kit.calls("look", "a"), "found"])
    one = team(lambda name, text: next(replies), plans=[kit.plan(("ada", "SUB", "none"))])
    done = await one.run(Workflow(), one.request(fields={"tools": [TOOL]}))
    for number in range(2):
        assert done.reason == "tool_calls"
        (call,) = done.tool_calls
        state = await one.engine().suspended(one.project, [call["id"]])
        done = await one.resume(Workflow(), state, {call["id"]: f"result {number}"})
    assert done.answer == "found"
    roles = [message["role"] for message in one.seen[-1][1]]
    assert roles == ["user", "assistant", "tool", "assistant", "tool"]


async def test_later_workflows_of_the_episode_are_told_what_tools_gave(team, kit):
    def said(name, text):
        return kit.calls("look", "a", place="attic") if text.endswith("look1") else "done"

    one = team(said, plans=[kit.plan(("ada", "look1", "none"), ("bob", "second", "none"), ("cyd", "third", "all"))])
    done = await one.run(Workflow(), one.request(fields={"tools": [TOOL]}))
    (call,) = done.tool_calls
    state = await one.engine().suspended(one.project, [call["id"]])
    await one.resume(Workflow(), state, {call["id"]: "A TRUNK"})
    assert not any("A TRUNK" in text for text in one.texts() if "### Your subtask\nthird" in text or "second" in text)

    one.plans = [kit.plan(("bob", "fourth", "none"))]
    one.seen.clear()
    await one.run(Workflow())
    (text,) = one.texts("bob")
    assert '### What tools gave before\nlook({"place": "attic"}) gave:\nA TRUNK' in text
    state_before = one.memory
    other = team(said, plans=[kit.plan(("bob", "fourth", "none"))], memory=state_before, project=one.project)
    await other.run(Workflow())  # another episode of the same project
    assert "A TRUNK" not in other.texts("bob")[0]


async def test_what_is_not_to_be_stored_is_resumed_and_not_remembered(team, kit):
    def said(name, text):
        return kit.calls("look", "a") if text.endswith("look1") else "done"

    one = team(said, plans=[kit.plan(("ada", "look1", "none"))])
    request = one.request(fields={"tools": [TOOL]}, store=False)
    done = await one.run(Workflow(), request)
    state = await one.engine().suspended(one.project, [done.tool_calls[0]["id"]])
    resumed = one.engine().resume(Workflow(), state, one.request(store=False), {done.tool_calls[0]["id"]: "SECRET"})
    assert [event async for event in resumed][-1].answer == "done"
    assert await one.memory.recall(one.project, one.episode, ("tool",)) == []


async def test_a_trinitys_solver_may_use_tools_too(team, kit):
    replies = iter(["Suggestion: x", kit.calls("look", "a"), "solved", "ACCEPT"])
    one = team(lambda name, text: next(replies))
    done = await one.run(Trinity(), one.request(fields={"tools": [TOOL]}))
    assert done.reason == "tool_calls"
    state = await one.engine().suspended(one.project, [done.tool_calls[0]["id"]])
    done = await one.resume(Trinity(), state, {done.tool_calls[0]["id"]: "R"})
    assert (done.answer, done.reason) == ("solved", "accepted")
    assert [row["turn"] for row in one.log.decisions if row["kind"] == "role"] == [1, 2, 2, 3]


def test_results_are_found_in_a_clients_messages():
    messages = [
        {"role": "user", "content": "q"},
        {"role": "tool", "tool_call_id": "old", "content": "not asked for"},
        {"role": "assistant", "tool_calls": []},
        {
            "role": "tool",
            "tool_call_id": "b",
            "content": [{"type": "text", "text": "B1"}, {"type": "text", "text": "B2"}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "A"},
        {"role": "user", "content": "and now?"},
    ]
    assert results_in(messages, {"a", "b"}) == ({"b": "B1\nB2", "a": "A"}, [{"role": "user", "content": "and now?"}])


class Lead(Policy):
    """Asks one worker, answers its own tool itself, and asks the same worker again with the result."""

    kind = "sidekick"
    recalls = ("context",)
    own = ({"type": "function", "function": {"name": "delegate", "parameters": {}}},)

    def next(self, state):
        first, second = state.get("first"), state.get("second")
        if first is None:
            return [self._act("first", state.request.messages)]
        if second is None and first.over:
            reply = {"role": "assistant", "content": None, "tool_calls": first.tool_calls}
            result = {"role": "tool", "tool_call_id": first.tool_calls[0]["id"], "content": "done for you"}
            return [self._act("second", [*first.messages, reply, result])]
        return End("second", "led") if second is not None and second.over else ()

    def _act(self, key, messages):
        call = Call(messages, answers=True, tools=True, own_tools=self.own, keep=True)
        return Act(key, "delegate", Named("ada", "rule"), lambda node: call)

    def answer(self, state):
        return "second"

    def keepsakes(self, state):
        request = state.request
        content = {"messages": state["second"].messages}
        return [Item(new_id(), request.project_id, request.episode_id, "context", content, datetime.now(UTC), 1, "ada")]


async def test_a_patterns_own_tool_stays_inside_and_messages_are_kept_for_the_next_call(team, kit):
    replies = iter([kit.calls("delegate", "call_0", task="x"), "thanks"])
    one = team(lambda name, text: next(replies))
    done = await one.run(Lead(), one.request(fields={"tools": [TOOL]}))
    assert (done.answer, done.reason) == ("thanks", "led")
    assert [message["role"] for message in one.seen[1][1]] == ["user", "assistant", "tool"]
    assert await one.engine().suspended(one.project, ["call_0"]) is None
    (kept,) = await one.memory.recall(one.project, one.episode, ("context",))
    assert kept.content["messages"] == one.seen[1][1]
