"""Handoff: workers as tools, masks, who owns the episode, what the next worker sees, and how it ends."""

from __future__ import annotations

import dataclasses

import pytest

from harness.engine.engine import everybody
from harness.engine.events import Failed
from harness.engine.patterns.handoff import Handoff, HandoffSettings, filtered
from harness.engine.patterns.transfer_tools import CARD_CHARS, transfer_tools
from harness.routing.eligibility import Eligibility
from pointsman.errors import UpstreamError


def start(**changes):
    return Handoff(HandoffSettings(start="ada", **changes))


def tool_names(one):
    return [[tool["function"]["name"] for tool in tools] for tools in one.offered]


@pytest.fixture
def listening(team):
    """A team that keeps the tools of every call."""

    def make(say, **options):
        one = team(say, **options)
        one.offered = []
        answer = one._answer

        async def answering(name, messages, tools):
            one.offered.append(list(tools))
            return await answer(name, messages, tools)

        one._answer = answering
        return one

    return make


async def test_a_tool_call_is_the_routing_decision_and_the_new_worker_answers(listening, kit):
    one = listening(lambda name, text: kit.calls("transfer_to_cyd", reason="It is hers.") if name == "ada" else name)
    done = await one.run(start())
    assert (done.answer, done.worker, done.reason) == ("cyd", "cyd", "1 handoffs")
    first, second = one.log.decisions[1:]
    assert (first["kind"], first["chosen"], first["forced"]) == ("route", "ada", "rule")
    assert (second["kind"], second["chosen"], second["forced"]) == ("delegate", "cyd", "suggested")
    assert second["parent_id"] == first["id"]
    assert second["plan"] == {"from": "ada", "reason": "It is hers."}
    assert tool_names(one) == [["transfer_to_bob", "transfer_to_cyd"], ["transfer_to_bob"]]


async def test_a_worker_is_told_its_own_card_and_why_it_was_given_this(listening, kit):
    one = listening(lambda name, text: kit.calls("transfer_to_cyd", reason="It is hers.") if name == "ada" else name)
    await one.run(start())
    first, second = one.texts()
    assert "Card of ada." in first and "Why you were given this" not in first
    assert "Card of cyd." in second and "It is hers." in second and "Card of ada." not in second
    described = one.offered[0][1]["function"]["description"]
    assert "cyd" in described and "Card of cyd." in described


async def test_a_worker_that_may_not_be_chosen_now_is_not_offered(listening):
    def masked():
        every = everybody(one.pool)
        left = tuple(worker for worker in every.workers if worker.name != "bob")
        return Eligibility({**every.reasons, "bob": "budget"}, False, left)

    one = listening(lambda name, text: name, eligible=lambda: masked())
    await one.run(start())
    assert tool_names(one) == [["transfer_to_cyd"]]


async def test_who_declares_no_tools_is_offered_none_and_is_not_the_one_to_begin(listening, kit):
    pool = kit.pool_of()
    able = [dataclasses.replace(worker, capabilities=frozenset()) for worker in pool.workers[:2]]
    one = listening(lambda name, text: name, pool=pool.__class__((*able, pool.workers[2])))
    done = await one.run(Handoff(), one.request("Ask bob."))
    assert (done.worker, tool_names(one)) == ("cyd", [["transfer_to_ada", "transfer_to_bob"]])
    assert one.log.decisions[1]["eligible"] == {"ada": "no_tools", "bob": "no_tools", "cyd": None}
    one.offered.clear()
    one.episode = one.request().id
    done = await one.run(start())
    assert (done.worker, tool_names(one)) == ("ada", [[]])


async def test_the_owner_keeps_the_episode_until_the_client_compacts_it(listening, kit):
    one = listening(lambda name, text: kit.calls("transfer_to_cyd", reason="r") if name == "ada" else name)
    long = [{"role": "user", "content": "word " * 400}, {"role": "assistant", "content": "ok"}]
    last = {"role": "user", "content": "And now?"}
    await one.run(start(), one.request(messages=[*long, last]))
    one.log.decisions.clear()
    await one.run(start(), one.request(messages=[*long, {"role": "assistant", "content": "x"}, last]))
    assert [(row["chosen"], row["forced"]) for row in one.log.decisions[1:]] == [("cyd", "sticky")]
    one.log.decisions.clear()
    await one.run(start(), one.request(messages=[last]))
    row = one.log.decisions[1]
    assert (row["chosen"], row["forced"]) == ("ada", "rule")
    compaction = row["plan"]["compaction"]
    assert compaction["before"] == "cyd" and compaction["tokens_before"] > 10 * compaction["prefill_tokens"] > 0


async def test_another_episode_and_a_request_that_is_not_stored_have_no_owner(listening, kit):
    one = listening(lambda name, text: kit.calls("transfer_to_cyd", reason="r") if name == "ada" else name)
    await one.run(start(), one.request(store=False))
    await one.run(start())
    one.episode = one.request().id
    await one.run(start())
    firsts = [row for row in one.log.decisions if row["kind"] == "route"]
    assert [row["chosen"] for row in firsts] == ["ada", "ada", "ada"]


async def test_handing_over_ends_after_max_handoffs_and_never_goes_back(listening, kit):
    def say(name, text):
        wants = next((tool["function"]["name"] for tool in one.offered[-1]), None)
        return kit.calls(wants, reason="not mine") if wants else f"{name} has to"

    one = listening(say)
    done = await one.run(start(max_handoffs=1))
    assert (done.answer, tool_names(one)[-1]) == ("bob has to", [])
    one.offered.clear()
    one.episode = one.request().id
    done = await one.run(start(max_handoffs=9))
    assert done.answer == "cyd has to"
    assert tool_names(one) == [["transfer_to_bob", "transfer_to_cyd"], ["transfer_to_cyd"], []]


async def test_a_worker_that_cannot_take_over_gives_the_conversation_back(listening, kit):
    def say(name, text):
        if name == "ada" and one.offered[-1]:
            return kit.calls("transfer_to_cyd", reason="r")
        return UpstreamError("bad_request", "no") if name == "cyd" else f"{name} after all"

    one = listening(say)
    done = await one.run(start())
    assert (done.answer, done.worker) == ("ada after all", "ada")
    assert [(row["chosen"], row["forced"]) for row in one.log.decisions[1:]] == [
        ("ada", "rule"), ("cyd", "suggested"), ("ada", "fallback"),
    ]  # fmt: skip
    assert tool_names(one)[-1] == []


async def test_where_nobody_answers_it_fails(listening):
    one = listening(lambda name, text: UpstreamError("server", "down"))
    done = await one.run(start())
    assert isinstance(done, Failed) and done.fault.fault == "server"


async def test_a_client_tool_goes_out_and_comes_back_to_the_owner(listening, kit):
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}

    def say(name, text):
        if name == "ada":
            return kit.calls("transfer_to_cyd", reason="r")
        return kit.calls("look", where="here") if "It was green." not in text else "green"

    one = listening(say)
    done = await one.run(start(), one.request(fields={"tools": [tool]}))
    (call,) = done.tool_calls
    state = await one.engine().suspended(one.project, [call["id"]])
    done = await one.resume(start(), state, {call["id"]: "It was green."})
    assert (done.answer, done.worker) == ("green", "cyd")
    assert tool_names(one)[1:] == [["look", "transfer_to_bob"], ["transfer_to_bob"]]


def test_what_is_handed_over_of_a_conversation():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    said = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
        {"role": "assistant", "content": "two", "tool_calls": [call]},
        {"role": "user", "content": "three"},
    ]
    assert filtered(said, "all") == said
    assert [message["content"] for message in filtered(said, "no_tools")] == ["s", "one", "two", "three"]
    assert not any("tool_calls" in message for message in filtered(said, "no_tools"))
    assert [message["content"] for message in filtered(said, "last")] == ["s", "three"]


def test_tool_names_are_ones_that_apis_take_and_never_equal(kit):
    (worker,) = kit.pool_of(["org/model:1.5"]).workers
    names = ("org/model:1.5", "org/model:1_5", "x" * 90, "x" * 91)
    workers = [dataclasses.replace(worker, name=name, card="c" * 2_000) for name in names]
    made = transfer_tools(workers)
    assert list(made)[:2] == ["transfer_to_org_model_1_5", "transfer_to_org_model_1_5_2"]
    assert len(made) == 4 and all(len(name) <= 64 for name in made)
    assert [worker for worker, _ in made.values()] == list(names)
    assert all(len(tool["function"]["description"]) < CARD_CHARS + 200 for _, tool in made.values())
