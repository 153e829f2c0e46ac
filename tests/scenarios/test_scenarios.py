"""The heavy scenarios of `benchmarks/scenarios.py`, scaled down: bursts, faults, slow clients, leaving, nasty inputs.

Each is on real processes, and ends with the common oracle: the workers' journal, what the callers saw,
and the rows in Postgres match. Kills, outages and stops are in tests/processes.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from benchmarks.stress.burst import crowd_in
from benchmarks.stress.corpus import load_corpus
from benchmarks.stress.faults import DEAD, KINDS, SETTINGS, again_after_content
from benchmarks.stress.leaving import PLAY, Leavers, in_flight, storm
from benchmarks.stress.load import Load
from benchmarks.stress.nasty import reads_back, send_all, stored_messages, wrong
from benchmarks.stress.scene import Stage, descriptors, stage, wait_until
from benchmarks.stress.slow_clients import Crowd, reader_seconds

SMALL = 300_000
"""Inputs beyond so many bytes are left to the benchmark."""


def most_at_once(journal: list[dict[str, Any]]) -> int:
    """The most calls that the workers had under way at any moment."""
    steps = sorted([(line["began"], 1) for line in journal] + [(line["ended"], -1) for line in journal])
    under_way = most = 0
    for _, step in steps:
        under_way += step
        most = max(most, under_way)
    return most


def test_a_burst_is_refused_beyond_the_limit_and_leaves_nothing_behind(new_database: Callable[[], str]) -> None:
    limit = 20
    sections = f"[gateway]\nmax_in_flight = {limit}\n"
    with stage(sections, database_url=new_database(), pause=0.4) as at:
        load = Load(at.url)
        asyncio.run(crowd_in(at, load, 150, 0.6))
        before = len(load.asks)
        asyncio.run(load.paced(10, 20, 0.5))
        found = at.settle(load.asks)
    crowd, after = load.asks[:before], load.asks[before:]
    refused = [ask for ask in crowd if not ask.whole]
    assert len(refused) > 50 and len(crowd) - len(refused) >= limit
    for ask in refused:
        assert (ask.status, ask.retry_after) == (429, 1)
        assert json.loads(ask.body)["error"]["code"] == "too_many_in_flight"
    assert most_at_once(found.journal) == limit
    assert len(after) >= 10 and all(ask.whole for ask in after)
    assert found.sound, found.as_dict()
    assert found.statuses == {"ok": sum(ask.whole for ask in load.asks)}


def test_workers_with_faults_and_a_dead_one(new_database: Callable[[], str]) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        faults = dict.fromkeys(KINDS, 0.05)
        settings = SETTINGS.format(first=0.4).replace("[retries]", "[retries]\nbackoff = 0.05")
        database = new_database()
        with stage(settings, seed=3, database_url=database, dead=dead, faults=faults, hang=0.8, pause=0.02) as at:
            load = Load(at.url)
            asyncio.run(load.paced(30, 60, 2.2))
            found = at.settle(load.asks)
    cut = [ask for ask in load.asks if ask.status == 200 and not ask.whole]
    assert len(load.asks) >= 100
    assert {line["met"] for line in found.journal} >= {None, "server", "rate_limited", "reset", "hang", "error_body"}
    assert all(ask.streamed and ask.told for ask in cut)  # after content: an error in the stream
    assert again_after_content(found) == 0
    assert sum(ask.whole for ask in load.asks) >= 0.97 * (len(load.asks) - len(cut))
    assert all(ask.told for ask in load.asks if not ask.whole)
    to_dead = sum(row[4] == DEAD for row in found.calls)
    assert 5 <= to_dead <= 20  # until its breaker opened, and once more while both others cool down
    assert len(found.calls) <= 1.7 * len(load.asks)
    assert found.sound, found.as_dict()
    assert found.statuses["truncated"] == len(cut)


def test_slow_readers_are_cut_and_half_bodies_hold_nobody_up(shared: Stage, numbers: count[int]) -> None:
    (pid,) = shared.gateways()
    load, crowd = Load(shared.url, numbers=numbers), Crowd(shared.url, hold=2.5)
    asyncio.run(load.closed(4, 0.3))
    baseline = descriptors(pid, shared.upstream)

    async def crowded() -> None:
        slow = [crowd.slow_reader(next(numbers)) for _ in range(8)]
        slow += [crowd.half_body() for _ in range(8)] + [crowd.slow_head() for _ in range(8)]
        await asyncio.gather(*slow, load.closed(4, 2.5))

    asyncio.run(crowded())
    crowd.close()
    assert wait_until(lambda: descriptors(pid, shared.upstream) <= baseline, 5) < 5
    found = shared.settle(load.asks)
    assert len(load.asks) > 60 and all(ask.whole for ask in load.asks)
    readers = reader_seconds(shared.database_url)
    assert len(readers) == 8 and max(readers) < 2.4  # the gap limit is 1 s
    assert found.statuses["client_cancelled"] == 8  # half a request is none
    assert found.sound, found.as_dict()


def test_a_storm_of_leaving_leaves_nothing_behind(shared: Stage, numbers: count[int]) -> None:
    (pid,) = shared.gateways()
    load = Load(shared.url, play={**PLAY, "pieces": 20}, numbers=numbers)
    leavers = Leavers(shared.url)
    asyncio.run(load.closed(4, 0.3))
    baseline, before = descriptors(pid, shared.upstream), cancelled(shared)
    asyncio.run(storm(load, leavers, 120))
    assert wait_until(lambda: in_flight(shared.url) == 0, 5) < 5
    assert wait_until(lambda: descriptors(pid, shared.upstream) <= baseline, 5) < 5
    found = shared.settle(load.asks)
    assert len(leavers.left) > 25 and all(ask.whole for ask in load.asks)
    ended = {line["number"]: line["ended"] for line in found.journal}
    late = [number for number, at in leavers.left.items() if ended.get(number, at) - at > 2]
    assert late == []
    content = [number for number in leavers.left if b'"content"' in leavers.read[number]]
    tokens = {found.numbers[row[0]] for row in found.calls if (row[5] or 0) > 0}
    assert len(content) > 10 and {str(number) for number in content} <= tokens
    assert 0 < found.statuses["client_cancelled"] - before <= len(leavers.left)
    assert found.sound, found.as_dict()


def cancelled(at: Stage) -> int:
    return at.settle([]).statuses["client_cancelled"]


@pytest.fixture(scope="module")
def corpus() -> list[Any]:
    return load_corpus()


def test_the_corpus_is_large_and_each_input_its_own(corpus: list[Any]) -> None:
    assert len(corpus) >= 150
    assert len({one.name for one in corpus}) == len(corpus)
    assert len({(one.body, one.stream) for one in corpus}) == len(corpus)
    assert {one.expect for one in corpus} == {"ok", "refused", "either"}


def test_no_nasty_input_gets_a_500_and_what_is_accepted_reads_back(shared: Stage, corpus: list[Any]) -> None:
    (pid,) = shared.gateways()
    inputs = [one for one in corpus if len(one.body) < SMALL]
    load = Load(shared.url, numbers=count(10_000_000))
    answers = asyncio.run(send_all(load, inputs))
    found = shared.settle(load.asks)
    stored = stored_messages(shared.database_url)
    assert len(answers) >= 150
    assert {one.name: why for one, ask in answers if (why := wrong(one, ask))} == {}
    assert [one.name for one, ask in answers if ask.whole and not reads_back(one, stored.get(ask.decision or ""))] == []
    assert sum(ask.whole for _, ask in answers) > 80
    assert load.asks[-1].whole and shared.gateways() == [pid]
    assert not (shared.served.home / "journal" / "rejected.log").exists()
    assert found.sound, found.as_dict()
