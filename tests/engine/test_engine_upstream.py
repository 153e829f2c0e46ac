"""Teams over real HTTP: streams, fallbacks, a worker that dies in the middle, cancellation of every call."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from harness.engine.events import CallEnded, CallStarted, Delta, Done, Failed, Progress
from harness.engine.limits import Limits
from harness.engine.patterns.single import Single
from harness.engine.patterns.trinity import Trinity
from harness.engine.patterns.workflow import Workflow


async def test_a_single_answer_is_streamed_as_the_worker_sends_it(over_http, upstream, fake):
    upstream.script("ada", fake.stream(fake.words("The ", "points ", "are set."), pause=0.01))
    one = over_http(upstream.url)
    done = await one.run(Single(), one.request("ada"), stream=True)
    assert [event.text for event in one.of(Delta)] == ["The ", "points ", "are set."]
    assert all(json.loads(event.chunk)["object"] == "chat.completion.chunk" for event in one.of(Delta))
    assert (done.answer, done.finish_reason) == ("The points are set.", "stop")
    (call,) = one.log.calls
    assert (call["status"], call["completion"], call["usage_estimated"]) == ("ok", "The points are set.", False)
    assert (done.totals.visible_input_tokens, done.totals.visible_output_tokens) == (
        call["input_tokens"], call["output_tokens"],
    )  # fmt: skip
    assert call["cost"] == done.totals.cost > 0


async def test_the_body_that_a_worker_gets_is_the_clients_but_for_model_and_messages(over_http, upstream, fake):
    upstream.script("bob", fake.text("x"))
    one = over_http(upstream.url)
    fields = {"temperature": 0.5, "model": "pointsman-ultra", "stream": True, "custom": {"a": [1, None]}}
    await one.run(Single(), one.request("bob", fields=fields))
    (call,) = upstream.of("bob")
    assert call.json == {
        "model": "bob", "temperature": 0.5, "custom": {"a": [1, None]},
        "messages": [{"role": "user", "content": "bob"}],
    }  # fmt: skip


async def test_another_worker_stands_in_and_the_intended_arm_stays_on_record(over_http, upstream, fake, kit):
    upstream.script("bob", fake.reply({"error": {"message": "down"}}, 500))
    for name in ("ada", "cyd"):
        upstream.script(name, fake.text(f"{name} here"))
    one = over_http(upstream.url, plans=[kit.plan(("bob", "SUB1", "none"), ("cyd", "SUB2", "all"))])
    done = await one.run(Workflow())
    assert done.answer == "cyd here"
    step = next(row for row in one.log.decisions if row["step"] == 1)
    outcome = next(row for row in one.log.outcomes if row["id"] == step["id"])
    assert (step["chosen"], outcome["worker"], outcome["calls"]) == ("bob", "ada", 2)
    failed, stood_in = [call for call in one.log.calls if call["decision_id"] == step["id"]]
    assert (failed["worker"], failed["status"], failed["http_status"]) == ("bob", "error", 500)
    assert (stood_in["worker"], stood_in["attempt"]) == ("ada", 2)
    assert failed["messages"] == stood_in["messages"]
    assert done.totals.calls == 3


@pytest.mark.parametrize("pattern", ["single", "trinity", "workflow"])
async def test_one_worker_down_in_the_middle_of_each_pattern(over_http, upstream, fake, kit, pattern):
    upstream.script("ada", fake.reset)
    for name in ("bob", "cyd"):
        upstream.script(name, fake.text("ACCEPT: mine"))
    one = over_http(upstream.url, plans=[kit.plan(("ada", "SUB1", "none"), ("bob", "SUB2", "all"))])
    policy = {"single": Single, "trinity": Trinity, "workflow": Workflow}[pattern]()
    done = await one.run(policy, one.request("ada"))
    assert isinstance(done, Done) and done.answer == "ACCEPT: mine"
    assert any(call["worker"] == "ada" and call["fault"] == "connect" for call in one.log.calls)
    assert sorted(row["id"] for row in one.log.decisions) == sorted(row["id"] for row in one.log.outcomes)


async def test_leaving_in_the_middle_of_a_tree_closes_every_upstream_call_within_two_seconds(
    over_http, upstream, fake, kit
):
    for name in ("ada", "bob", "cyd"):
        upstream.script(name, fake.hang)
    steps = [("ada", "SUB1", "none"), ("bob", "SUB2", "none"), ("cyd", "SUB3", "none"), ("ada", "SUB4", "all")]
    one = over_http(upstream.url, plans=[kit.plan(*steps)])
    events = one.engine().run(Workflow(), one.request(), stream=True)
    async for event in events:
        if isinstance(event, CallStarted) and event.worker == "cyd":
            break
    until = time.monotonic() + 10
    while len(upstream.calls) < 3 and time.monotonic() < until:
        await asyncio.sleep(0.01)
    left_at = time.monotonic()
    await events.aclose()
    for call in upstream.calls:
        assert await asyncio.to_thread(upstream.wait_left, call) - left_at < 2
    statuses = [row["status"] for row in one.log.outcomes]
    assert statuses.count("client_cancelled") == 4 and statuses.count("ok") == 1  # three steps and the root; the plan
    assert [call["status"] for call in one.log.calls if call["purpose"] == "serve"] == ["cancelled"] * 3


async def test_leaving_a_streamed_last_step_closes_it_and_keeps_what_came(over_http, upstream, fake):
    upstream.script("ada", fake.stream(fake.words("begun").replace(fake.DONE, b""), ending="hang"))
    one = over_http(upstream.url)
    events = one.engine().run(Single(), one.request("ada"), stream=True)
    async for event in events:
        if isinstance(event, Delta):
            break
    await events.aclose()
    await asyncio.to_thread(upstream.wait_left, upstream.calls[0])
    assert (one.log.calls[0]["status"], one.log.calls[0]["completion"]) == ("cancelled", "begun")
    assert one.log.outcomes[0]["status"] == "client_cancelled"


async def test_a_stream_that_breaks_off_after_content_ends_truncated(over_http, upstream, fake):
    body = fake.words("half ", "an answer")
    upstream.script("ada", fake.stream(body[: body.index(b"an answer")], ending="reset"))
    one = over_http(upstream.url)
    failed = await one.run(Single(), one.request("ada"), stream=True)
    assert isinstance(failed, Failed)
    assert (failed.status, failed.fault.fault) == ("truncated", "truncated")
    assert [event.text for event in one.of(Delta)] == ["half "]
    assert one.log.calls[0]["status"] == "truncated"
    assert len(upstream.calls) == 1  # after content nothing is retried


async def test_without_a_stream_a_broken_answer_is_another_workers(over_http, upstream, fake):
    upstream.script("ada", fake.reply(b'{"choices": [', 200))
    upstream.script("bob", fake.text("whole"))
    one = over_http(upstream.url)
    done = await one.run(Single(), one.request("ada"))
    assert (done.answer, done.worker) == ("whole", "bob")


async def test_a_streamed_tool_call_is_told_whole_at_the_end(over_http, upstream, fake, kit):
    head = {"index": 0, "id": "call_9", "type": "function", "function": {"name": "look", "arguments": ""}}
    parts = [
        fake.ROLE, fake.event(fake.delta(tool_calls=[head])),
        fake.event(fake.delta(tool_calls=[{"index": 0, "function": {"arguments": '{"a": 1}'}}])),
        fake.event(fake.delta(finish="tool_calls")), fake.DONE,
    ]  # fmt: skip
    upstream.script("ada", fake.stream(b"".join(parts)))
    one = over_http(upstream.url, plans=[kit.plan(("ada", "SUB", "none"))])
    tool = {"type": "function", "function": {"name": "look", "parameters": {}}}
    done = await one.run(Workflow(), one.request(fields={"tools": [tool]}), stream=True)
    assert (done.reason, one.of(Delta)) == ("tool_calls", [])
    (call,) = done.tool_calls
    assert call["function"] == {"name": "look", "arguments": '{"a": 1}'}
    assert call["id"] != "call_9"
    assert upstream.calls[0].json["tools"] == [tool]


async def test_the_deadline_reaches_the_workers_connection(over_http, upstream, fake):
    upstream.script("ada", fake.hang)
    one = over_http(upstream.url)
    until = asyncio.get_running_loop().time() + 0.3
    failed = await one.run(Single(), one.request("ada"), Limits(deadline=until))
    assert failed.status == "timeout"
    await asyncio.to_thread(upstream.wait_left, upstream.calls[0])


async def test_progress_comes_before_the_answer(over_http, upstream, fake, kit):
    for name in ("ada", "bob", "cyd"):
        upstream.script(name, fake.text(f"{name}!"))
    one = over_http(upstream.url, plans=[kit.plan(("ada", "SUB1", "none"), ("bob", "SUB2", "all"))])
    await one.run(Workflow(), stream=True)
    first = next(number for number, event in enumerate(one.events) if isinstance(event, Delta))
    before = [type(event) for event in one.events[:first]]
    assert before.count(Progress) == 3 and before.count(CallEnded) == 1
    assert "".join(event.text for event in one.of(Delta)) == "bob!"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_worker_of_the_messages_api_takes_part(over_http, upstream, fake, kit, stream):
    from pointsman.config.model import QuirksConfig

    body = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "ada", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "by messages"}], "usage": {"input_tokens": 5, "output_tokens": 2},
    }  # fmt: skip
    upstream.script("ada", fake.reply(body))
    upstream.script("bob", fake.text("joined"))
    pool = kit.pool_of(("ada", "bob"), upstream.url)
    first = pool.workers[0].__class__(**{**pool.workers[0].__dict__, "quirks": QuirksConfig(api="anthropic")})
    pool = pool.__class__((first, pool.workers[1]))
    one = over_http(upstream.url, pool=pool, plans=[kit.plan(("ada", "SUB1", "none"), ("bob", "SUB2", "all"))])
    done = await one.run(Workflow(), stream=stream)
    assert done.answer == "joined"
    assert "by messages" in upstream.of("bob")[0].json["messages"][-1]["content"]
    assert upstream.of("ada")[0].path == "/v1/messages"
