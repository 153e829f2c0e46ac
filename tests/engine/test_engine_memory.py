"""Memory: scoped to project and episode, bounded, expiring; no answer is lost while Postgres is away."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from sqlalchemy import create_engine, text

from harness.engine.memory import Bounds, Item, LocalMemory
from harness.engine.patterns.workflow import Workflow
from harness.engine.postgres_memory import PostgresMemory, sweep
from pointsman.ids import new_id

NOW = datetime(2026, 5, 1, tzinfo=UTC)
PROJECT, OTHER = new_id(), new_id()


def item(kind="tool", episode="", size=0, project=PROJECT, calls=(), **changes):
    content = {"name": "look", "arguments": "{}", "result": "x" * size}
    made = Item(new_id(), project, episode, kind, content, NOW, 1, "ada", tuple(calls))
    return msgspec.structs.replace(made, **changes)


@pytest.fixture(params=["local", "postgres"])
def memory_of(request, engine):
    """The same rules hold in one process and in Postgres."""

    def make(bounds=None, **options):
        if request.param == "local":
            return LocalMemory(bounds)
        return PostgresMemory(engine, bounds, now=lambda: NOW, **options)

    return make


async def test_an_episode_recalls_its_own_oldest_first(memory_of):
    memory, episode = memory_of(), new_id()
    items = [item(episode=episode) for _ in range(3)]
    await memory.keep(items)
    await memory.keep([item(episode=new_id()), item(episode=episode, project=OTHER), item("context", episode)])
    assert await memory.recall(PROJECT, episode, ("tool",)) == items
    assert len(await memory.recall(PROJECT, episode, ("tool", "context"))) == 4
    assert await memory.recall(OTHER, new_id(), ("tool",)) == []


async def test_the_newest_items_stay_within_the_bounds_of_each_kind(memory_of):
    memory, episode = memory_of(Bounds(items=3, bytes=2_000)), new_id()
    kept = []
    for size in (10, 10, 10, 10, 900, 10):
        kept.append(item(episode=episode, size=size))
        await memory.keep(kept[-1:])
    await memory.keep([item("context", episode, size=1_500)])
    assert [i.id for i in await memory.recall(PROJECT, episode, ("tool",))] == [i.id for i in kept[-3:]]
    big = item(episode=episode, size=1_500)
    await memory.keep([big])
    # The newest first: the big one stays, and of the others those that still fit beside it.
    left = await memory.recall(PROJECT, episode, ("tool",))
    assert [i.id for i in left] == [kept[-1].id, big.id]
    assert sum(i.size for i in left) <= 2_000
    assert len(await memory.recall(PROJECT, episode, ("context",))) == 1


async def test_a_waiting_run_is_found_by_any_of_its_calls_in_its_project_alone(memory_of):
    memory, episode = memory_of(), new_id()
    one, two = (f"call_{new_id()}" for _ in range(2))
    older, newer = item("state", episode, calls=[one, two]), item("state", episode, calls=[two])
    await memory.keep([older])
    await memory.keep([newer])
    assert (await memory.waiting(PROJECT, [one])).id == older.id
    assert (await memory.waiting(PROJECT, ["call_x", two])).id == newer.id
    assert await memory.waiting(OTHER, [one, two]) is None
    assert await memory.waiting(PROJECT, ["call_x"]) is None
    await memory.forget(PROJECT, [newer.id])
    assert (await memory.waiting(PROJECT, [two])).id == older.id
    await memory.forget(OTHER, [older.id])
    assert (await memory.waiting(PROJECT, [two])).id == older.id


async def test_what_has_expired_is_not_recalled_and_is_swept(engine):
    episode, clock = new_id(), [NOW]
    memory = PostgresMemory(engine, Bounds(), now=lambda: clock[0])
    await memory.keep([item(episode=episode)])
    clock[0] = NOW + timedelta(days=8)
    assert await memory.recall(PROJECT, episode, ("tool",)) == []
    assert sweep(engine, clock[0]) >= 1
    with engine.connect() as connection:
        assert (
            connection.scalar(text("SELECT count(*) FROM memory_item WHERE expires_at <= :now"), {"now": clock[0]}) == 0
        )


async def test_another_process_finds_a_waiting_run(engine):
    episode, call = new_id(), f"call_{new_id()}"
    kept = item("state", episode, calls=[call])
    await PostgresMemory(engine, now=lambda: NOW).keep([kept])
    assert await PostgresMemory(engine, now=lambda: NOW).waiting(PROJECT, [call]) == kept


async def test_what_is_kept_is_redacted_but_for_a_waiting_run(engine):
    episode, call = new_id(), f"call_{new_id()}"
    memory = PostgresMemory(engine, now=lambda: NOW, redact=lambda value: {**value, "result": "[redacted]"})
    await memory.keep([item(episode=episode, size=5), item("state", episode, size=5, calls=[call])])
    (tool,) = await memory.recall(PROJECT, episode, ("tool",))
    assert tool.content["result"] == "[redacted]"
    assert (await memory.waiting(PROJECT, [call])).content["result"] == "xxxxx"


async def test_values_that_postgres_cannot_hold_are_made_harmless(engine):
    memory, episode = PostgresMemory(engine, now=lambda: NOW), new_id()
    odd = item(episode=episode, content={"name": "a\x00b", "arguments": "\ud83d", "result": "ok"})
    await memory.keep([odd])
    (held,) = await memory.recall(PROJECT, episode, ("tool",))
    assert held.content == {"name": "a\ufffdb", "arguments": "\ufffd", "result": "ok"}


async def test_many_gateways_that_keep_at_once_hold_the_bounds(engine):
    episode = new_id()
    memories = [PostgresMemory(engine, Bounds(items=5), now=lambda: NOW) for _ in range(4)]
    await asyncio.gather(*(memory.keep([item(episode=episode)]) for memory in memories for _ in range(5)))
    assert len(await memories[0].recall(PROJECT, episode, ("tool",))) == 5


async def test_while_postgres_is_away_this_process_remembers_for_itself(caplog):
    nowhere = create_engine("postgresql+psycopg://nobody@127.0.0.1:1/none", connect_args={"connect_timeout": 2})
    memory, episode, call = PostgresMemory(nowhere, now=lambda: NOW), new_id(), f"call_{new_id()}"
    tool, state = item(episode=episode), item("state", episode, calls=[call])
    await memory.keep([tool])
    await memory.keep([state])
    assert await memory.recall(PROJECT, episode, ("tool",)) == [tool]
    assert await memory.waiting(PROJECT, [call]) == state
    assert await memory.waiting(PROJECT, ["call_x"]) is None
    await memory.forget(PROJECT, [state.id])
    assert await memory.waiting(PROJECT, [call]) is None
    assert "memory cannot be written (OperationalError)" in caplog.text


async def test_a_workflow_resumes_in_another_process(team, kit, engine):
    def said(name, text):
        return kit.calls("look", "a") if text.endswith("look1") else "done"

    tool = {"type": "function", "function": {"name": "look", "parameters": {}}}
    steps = kit.plan(("ada", "look1", "none"), ("bob", "second", "all"))
    one = team(said, plans=[steps], memory=PostgresMemory(engine))
    done = await one.run(Workflow(), one.request(fields={"tools": [tool], "temperature": 0.25}))
    (call,) = done.tool_calls
    other = team(said, memory=PostgresMemory(engine), project=one.project, episode=one.episode)
    state = await other.engine().suspended(other.project, [call["id"]])
    finished = await other.resume(Workflow(), state, {call["id"]: "R"})
    assert (finished.answer, finished.reason) == ("done", "planned")
    (remembered,) = await PostgresMemory(engine).recall(one.project, one.episode, ("tool",))
    assert (remembered.content["name"], remembered.content["result"], remembered.workflow) == ("look", "R", 1)


def test_a_local_memory_holds_so_many_episodes():
    async def fill():
        memory = LocalMemory(episodes=2)
        for episode in ("a", "b", "a", "c"):
            await memory.keep([item(episode=episode)])
        return [len(await memory.recall(PROJECT, episode, ("tool",))) for episode in ("a", "b", "c")]

    assert asyncio.run(fill()) == [2, 0, 1]
