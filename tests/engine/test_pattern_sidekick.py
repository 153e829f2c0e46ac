"""Sidekick: what is delegated and what not, the sidekick's own context, the lead's word on it, and the bounds."""

from __future__ import annotations

import pytest

from harness.engine.events import Done, Failed
from harness.engine.limits import Limits
from harness.engine.patterns.sidekick import Sidekick, SidekickSettings
from harness.engine.patterns.sidekick_tools import TOOLS
from harness.engine.workers import CallResult
from pointsman.errors import UpstreamError


def pair(**changes):
    return Sidekick(SidekickSettings(("bob",), **{"lead": "ada", **changes}))


def lead(*replies):
    """`ada` gives these replies in turn; `bob` does what it is told, by number."""
    left, done = list(replies), []

    def say(name, text):
        if name == "ada":
            return left.pop(0)
        done.append(text)
        return f"result {len(done)}"

    return say


def rows(one, *kinds):
    return [(row["kind"], row["chosen"]) for row in one.log.decisions if row["kind"] in kinds]


async def test_a_delegated_task_comes_back_to_the_lead_which_answers(team, kit):
    one = team(lead(kit.calls("delegate", task="Find the year."), "It was 1969."))
    done = await one.run(pair())
    assert (done.answer, done.worker, done.reason) == ("It was 1969.", "ada", "1 delegated")
    assert rows(one, "route") == [("route", "ada"), ("route", "bob"), ("route", "ada")]
    assert rows(one, "delegate") == [("delegate", "delegate"), ("delegate", "self")]
    last = one.seen[-1][1]
    assert [message["role"] for message in last] == ["user", "assistant", "tool"]
    assert last[-1]["content"] == "result 1" and last[-1]["tool_call_id"] == last[-2]["tool_calls"][0]["id"]
    (review,) = [row for row in one.log.decisions if row["kind"] == "stop"]
    side = next(row for row in one.log.decisions if row["chosen"] == "bob")
    outcome = next(row for row in one.log.outcomes if row["id"] == review["id"])
    assert (review["chosen"], review["parent_id"]) == ("accepted", side["id"])
    assert (outcome["score"], outcome["reason"]) == (1.0, "accepted by the lead")


async def test_the_sidekick_sees_its_tasks_and_nothing_of_the_conversation(team, kit):
    one = team(lead(kit.calls("delegate", task="Find the year."), "Done."))
    await one.run(pair(), one.request("The secret question."))
    (seen,) = [messages for name, messages in one.seen if name == "bob"]
    assert [message["role"] for message in seen] == ["system", "user"]
    assert seen[-1]["content"] == "Find the year."
    assert "secret" not in str(seen)


async def test_its_context_outlives_turns_and_requests_and_is_of_one_episode(team, kit):
    tasks = [kit.calls("delegate", task=f"Task {letter}.") for letter in "ABC"]
    one = team(lead(tasks[0], tasks[1], "First.", tasks[2], "Second.", tasks[0], "Other."))
    await one.run(pair())
    await one.run(pair())
    seen = [messages for name, messages in one.seen if name == "bob"]
    assert [m["content"] for m in seen[-1][1:]] == ["Task A.", "result 1", "Task B.", "result 2", "Task C."]
    one.episode = one.request().id
    await one.run(pair())
    assert [m["content"] for m in [m for name, m in one.seen if name == "bob"][-1][1:]] == ["Task A."]


async def test_what_is_kept_of_a_request_is_what_it_added(team, kit):
    one = team(lead(*[kit.calls("delegate", task="T"), "Done."] * 3))
    for _ in range(3):
        await one.run(pair())
    items = await one.memory.recall(one.project, one.episode, ["context"])
    sizes = [len(item.content["messages"]) for item in items if "messages" in item.content]
    assert sizes == [3, 2, 2]


async def test_a_rejected_result_is_an_outcome_and_the_lead_goes_on(team, kit):
    one = team(lead(kit.calls("delegate", task="T"), kit.calls("reject", reason="nonsense"), "Myself."))
    done = await one.run(pair())
    assert done.answer == "Myself."
    assert rows(one, "stop") == [("stop", "rejected")]
    assert [row["score"] for row in one.log.outcomes if row["reason"] == "rejected by the lead"] == [0.0]
    assert "noted" in one.seen[-1][1][-1]["content"]


async def test_a_redo_rejects_the_last_result_and_asks_anew(team, kit):
    again = kit.calls("delegate", task="T, with care", redo=True)
    one = team(lead(kit.calls("delegate", task="T"), again, "Good."))
    await one.run(pair())
    assert rows(one, "stop") == [("stop", "rejected"), ("stop", "accepted")]


async def test_several_delegations_of_one_reply_run_one_after_another(team):
    two = [
        {"id": "call_0", "type": "function", "function": {"name": "delegate", "arguments": f'{{"task": "{task}"}}'}}
        for task in ("A", "B")
    ]
    one = team(lead(CallResult("?", None, two, "tool_calls"), "Both."))
    await one.run(pair())
    seen = [messages for name, messages in one.seen if name == "bob"]
    assert [m["content"] for m in seen[1][1:]] == ["A", "result 1", "B"]
    assert [m["content"] for m in one.seen[-1][1] if m["role"] == "tool"] == ["result 1", "result 2"]


async def test_a_long_context_is_summed_up_and_only_there_may_the_worker_change(team, kit):
    def say(name, text):
        if name == "ada":
            return left.pop(0)
        return "The notes." if "Your notes are getting long" in text else f"{name} " + "w" * 5_000

    left = [kit.calls("delegate", task=f"{who} do {n}") for n, who in enumerate(("bob", "cyd", "cyd"))] + ["Done."]
    one = team(say)
    await one.run(Sidekick(SidekickSettings(("bob", "cyd"), "ada", compact_at=1_000)))
    chosen = [(row["chosen"], row["forced"]) for row in one.log.decisions if row["kind"] == "route"]
    assert [one for one in chosen if one[0] != "ada"] == [
        ("bob", None), ("bob", "sticky"), ("cyd", None), ("cyd", "sticky"), ("cyd", None),
    ]  # fmt: skip
    compaction = next(row["plan"]["compaction"] for row in one.log.decisions if row.get("plan"))
    assert compaction["before"] == "bob" and compaction["tokens_before"] > 700 > compaction["prefill_tokens"]
    after = next(messages for name, messages in one.seen if name == "cyd")
    assert [m["content"] for m in after[1:]] == ["What you noted of your work so far:\nThe notes.", "cyd do 1"]


async def test_a_sidekick_that_is_down_is_told_to_the_lead_and_not_asked_again(team, kit):
    def say(name, text):
        return left.pop(0) if name == "ada" else UpstreamError("server", "down")

    left = [kit.calls("delegate", task="T"), kit.calls("delegate", task="T"), "Myself."]
    one = team(say)
    done = await one.run(pair())
    assert done.answer == "Myself."
    assert [name for name, _ in one.seen] == ["ada", "bob", "ada", "ada"]
    assert "could not be reached (server)" in one.seen[2][1][-1]["content"]
    assert rows(one, "stop") == []


async def test_a_lead_that_fails_in_the_middle_leaves_the_sidekicks_word(team, kit):
    failing = [kit.calls("delegate", task="T"), UpstreamError("server", "down")]

    def say(name, text):
        return failing.pop(0) if name == "ada" else "A result."

    one = team(say)
    done = await one.run(pair())
    assert isinstance(done, Done) and (done.answer, done.worker) == ("A result.", "bob")


async def test_delegations_are_bounded_and_a_lead_that_never_answers_ends(team, kit):
    one = team(lambda name, text: kit.calls("delegate", task="T") if name == "ada" else "r")
    done = await one.run(pair(max_delegations=2))
    assert isinstance(done, Done) and (done.answer, done.reason) == ("r", "turns")
    assert [name for name, _ in one.seen].count("bob") == 2
    assert "no more may be delegated" in str([m for name, m in one.seen if name == "ada"][-1])


async def test_withholding_the_tool_is_a_draw_with_its_propensity(team, kit):
    offered = []

    async def answer(name, messages, tools):
        offered.append(bool(tools))
        return "Done."

    one = team()
    one._answer = answer
    for seed in range(120):
        one.episode = one.request().id
        await one.run(pair(withhold=0.25), one.request(seed=seed))
    draws = [row for row in one.log.decisions if row["kind"] == "delegate" and row["chosen"] in ("offer", "withhold")]
    assert all(row["probabilities"] == {"offer": 0.75, "withhold": 0.25} for row in draws)
    assert [row["chosen"] == "offer" for row in draws] == offered
    assert 15 < offered.count(False) < 50


async def test_the_clients_tools_go_out_for_lead_and_sidekick(team, kit):
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    replies = {"ada": [kit.calls("delegate", task="Look."), "Seen."], "bob": [kit.calls("look"), "It is green."]}
    one = team(lambda name, text: replies[name].pop(0))
    done = await one.run(pair(), one.request(fields={"tools": [tool]}))
    (call,) = done.tool_calls
    assert call["function"]["name"] == "look"
    state = await one.engine().suspended(one.project, [call["id"]])
    done = await one.resume(pair(), state, {call["id"]: "green"})
    assert done.answer == "Seen."
    assert one.seen[-1][1][-1]["content"] == "It is green."
    items = await one.memory.recall(one.project, one.episode, ["context"])
    kept = next(item.content["messages"] for item in items if "messages" in item.content)
    assert [message["role"] for message in kept] == ["system", "user", "assistant", "tool", "assistant"]


async def test_limits_bind_lead_and_sidekick_together(team, kit):
    one = team(lead(kit.calls("delegate", task="T"), "Never."))
    done = await one.run(pair(), limits=Limits(calls=2))
    assert isinstance(done, Done) and (done.answer, done.reason) == ("result 1", "limit: calls")


async def test_a_lead_that_cannot_be_reached_is_a_failure(team):
    one = team(lambda name, text: UpstreamError("server", "down"))
    assert isinstance(await one.run(pair()), Failed)


def test_the_tools_are_named_as_the_lead_is_told():
    assert [tool["function"]["name"] for tool in TOOLS] == ["delegate", "reject"]


@pytest.mark.parametrize("given", ["", "not json", "[1]", '{"task": " "}'])
async def test_a_delegation_without_a_task_is_answered_and_not_carried_out(team, given):
    bad = {"id": "c", "type": "function", "function": {"name": "delegate", "arguments": given}}
    one = team(lead(CallResult("?", None, [bad], "tool_calls"), "Then myself."))
    done = await one.run(pair())
    assert done.answer == "Then myself." and "bob" not in [name for name, _ in one.seen]
    assert "not carried out" in one.seen[-1][1][-1]["content"]
