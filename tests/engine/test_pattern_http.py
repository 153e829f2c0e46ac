"""Cascade, sidekick, handoff and vote over real HTTP: one worker down, leaving in the middle, the answer streamed."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from harness.engine.events import Delta, Done
from harness.engine.patterns.cascade import Cascade, CascadeSettings
from harness.engine.patterns.handoff import Handoff, HandoffSettings
from harness.engine.patterns.sidekick import Sidekick, SidekickSettings
from harness.engine.patterns.vote import Vote, VoteSettings

PATTERNS = ("cascade", "sidekick", "handoff", "vote")


def policy(kind):
    """Each with `bob` in its middle: second tier, sidekick, who is handed over to, second voter."""
    match kind:
        case "cascade":
            return Cascade(CascadeSettings((("ada",), ("bob",), ("cyd",)), verifier="cyd"))
        case "sidekick":
            return Sidekick(SidekickSettings(("bob",), lead="ada"))
        case "handoff":
            return Handoff(HandoffSettings(start="ada", workers=frozenset({"ada", "bob"})))
    return Vote(VoteSettings(workers=("ada", "bob", "cyd")))


@pytest.fixture
def scripted(upstream, fake):
    """What `ada` does on its way to `bob`, in each pattern; `cyd` verifies and says so."""

    def script(kind):
        def calling(name, **arguments):
            call = {"name": name, "arguments": json.dumps(arguments)}
            call = {"id": "call_0", "type": "function", "function": call}
            return fake.reply(fake.completion(None, message={"tool_calls": [call]}, finish="tool_calls"))

        first = {
            "sidekick": [calling("delegate", task="A task."), fake.text("ada at last")],
            "handoff": [calling("transfer_to_bob", reason="his"), fake.text("ada at last")],
        }
        upstream.script("ada", *first.get(kind, [fake.text("ada at first")]))
        upstream.script("cyd", fake.text("Score: 0.3. ada at first"))

    return script


@pytest.mark.parametrize("kind", PATTERNS)
async def test_one_worker_down_in_the_middle(over_http, upstream, fake, scripted, kind):
    scripted(kind)
    upstream.script("bob", fake.reset)
    one = over_http(upstream.url)
    done = await one.run(policy(kind))
    expected = {"cascade": "Score: 0.3. ada at first", "vote": "ada at first"}.get(kind, "ada at last")
    if kind == "handoff":  # whoever stands in is not bob, and owns the conversation
        expected = done.answer
        assert done.worker in ("ada", "cyd")
    assert isinstance(done, Done) and done.answer == expected
    assert any(call["worker"] == "bob" and call["fault"] == "connect" for call in one.log.calls)
    assert sorted(row["id"] for row in one.log.decisions) == sorted(row["id"] for row in one.log.outcomes)


@pytest.mark.parametrize("kind", PATTERNS)
async def test_leaving_in_the_middle_closes_every_call(over_http, upstream, fake, scripted, kind):
    scripted(kind)
    upstream.script("bob", fake.hang)
    one = over_http(upstream.url)
    run = asyncio.ensure_future(one.run(policy(kind)))
    until = time.monotonic() + 10
    while not upstream.of("bob") and time.monotonic() < until:
        await asyncio.sleep(0.005)
    left_at = time.monotonic()
    run.cancel()
    await asyncio.wait({run})
    (call,) = upstream.of("bob")
    assert await asyncio.to_thread(upstream.wait_left, call) - left_at < 2
    assert [row["status"] for row in one.log.calls if row["worker"] == "bob"] == ["cancelled"]
    assert sorted(row["id"] for row in one.log.decisions) == sorted(row["id"] for row in one.log.outcomes)
    assert [row["status"] for row in one.log.outcomes].count("client_cancelled") >= 2


@pytest.mark.parametrize("kind", ["sidekick", "handoff"])
async def test_the_last_reply_is_streamed_as_it_comes(over_http, upstream, fake, kind):
    def streamed(name, **arguments):
        call = {"index": 0, "id": "call_0", "type": "function"}
        call["function"] = {"name": name, "arguments": json.dumps(arguments)}
        parts = [fake.ROLE, fake.event(fake.delta(tool_calls=[call])), fake.event(fake.delta(finish="tool_calls"))]
        return fake.stream(b"".join([*parts, fake.DONE]))

    last = fake.stream(fake.words("the ", "answer"))
    if kind == "sidekick":
        upstream.script("ada", streamed("delegate", task="A task."), last)
        upstream.script("bob", fake.text("result"))
    else:
        upstream.script("ada", streamed("transfer_to_bob", reason="his"))
        upstream.script("bob", last)
    one = over_http(upstream.url)
    done = await one.run(policy(kind), stream=True)
    assert [delta.text for delta in one.of(Delta)] == ["the ", "answer"]
    assert done.answer == "the answer"
    if kind == "sidekick":
        assert not upstream.of("bob")[0].json.get("stream")
