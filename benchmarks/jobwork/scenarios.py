"""Scenarios 4, 7 and 11: killed workers, a broker that is away and comes back empty, a queue of 50,000.

4. Rounds of harm on the embedded broker (`rounds`); 11. the long queue on Redis (`drain`).
7. Redis is killed under 200 queued jobs, half of them asked for while it is away, and comes back empty: the
gateway must not notice, every job has to run exactly once, and workers have to go on by themselves.
"""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from typing import Any

from benchmarks.common.instance import Instance, instance
from benchmarks.jobwork.drain import JOBS, drain
from benchmarks.jobwork.machine import Board, until
from benchmarks.jobwork.rounds import kill_rounds
from benchmarks.jobwork.scene import Scene, scene
from benchmarks.jobwork.servers import RedisServer
from benchmarks.stress.load import Load
from benchmarks.stress.scene import configuration, workers
from benchmarks.stress.verdict import Size, Verdict

AWAY_SECONDS = 60.0
AWAY_JOBS = 200
RATE, CALLERS = 20.0, 10
RECOVERY_SECONDS = 60.0
LEASE_SECONDS = 30.0
SMALL = {"steps": 2, "seconds": 0.05, "chunks": 0, "small": True}


def killed(size: Size) -> dict[str, Any]:
    """Scenario 4."""
    verdict = Verdict()
    with scene("embedded") as at:
        found = kill_rounds(at, int(size.of(50, 5)), size.seed)
    verdict.is_("lost", found["lost"], 0)
    verdict.is_("doubled", found["doubled"], 0)
    verdict.at_most("recovered_s_max", found["recovered_s_max"], LEASE_SECONDS)
    verdict.is_("worker_exit_code", found["exit_code"], 0)
    verdict.note(rounds=found["kill_rounds"], attempts=found["attempts"], what=found["what"])
    return verdict.as_dict()


def long_queue(size: Size) -> dict[str, Any]:
    """Scenario 11."""
    verdict = Verdict()
    with scene("redis", notes=False, sandbox=False) as at:
        found = drain(at, int(size.of(JOBS, 5_000)))
    verdict.at_least("enqueued_per_s", found["enqueued_per_s"], 500)
    verdict.at_least("drain_per_s", found["drain_per_s"], 100)
    verdict.at_most("urgent_s", found["urgent_s"], 5)
    verdict.is_("duplicates_made", found["duplicates_made"], 0)
    verdict.is_("lost", found["lost"], 0)
    verdict.is_("run_twice", found["doubled"], 0)
    verdict.at_most("broker_mb", found["broker_mb"], 500)
    verdict.at_most("table_after_vacuum_by_its_least_size", found["bloat"], 2)
    return verdict.as_dict()


def broker_away(size: Size) -> dict[str, Any]:
    """Scenario 7."""
    verdict = Verdict()
    with scene("redis", sandbox=False) as at, workers(pause=0.05) as upstream:
        home = at.home("concurrency = 2\n")
        worker = home.worker("--queues", "default")
        with instance(configuration(upstream, database_url=at.board.url)) as served:
            load = Load(served.url, rng=size.rng())
            back = asyncio.run(_outage(at, served, load, int(size.of(AWAY_JOBS, 20)), size.of(AWAY_SECONDS, 4)))
        verdict.is_("worker_exit_code", worker.stop(), 0)
        verdict.is_("jobs_done_once", _once(at.board), int(size.of(AWAY_JOBS, 20)))
    verdict.is_("gateway_errors", sum(not ask.whole for ask in load.asks), 0)
    verdict.at_most("consumes_again_s", back, RECOVERY_SECONDS)
    verdict.note(asks=len(load.asks))
    return verdict.as_dict()


async def _outage(at: Scene, served: Instance, load: Load, jobs: int, away: float) -> float:
    """Seconds from Redis's return until a job was done, while the gateway is asked all the time."""
    task = asyncio.create_task(load.paced(CALLERS, RATE))
    back = await asyncio.to_thread(_redis_goes, at, served, jobs, away)
    load.stop()
    await task
    return back


def _redis_goes(at: Scene, served: Instance, jobs: int, away: float) -> float:
    server = at.server
    assert isinstance(server, RedisServer)
    for number in range(jobs // 2):
        _post(served, number)
    server.kill()
    gone = time.monotonic()
    for number in range(jobs // 2, jobs):
        _post(served, number)
    time.sleep(max(away - (time.monotonic() - gone), 0))
    done = _done(at.board)
    server.start()
    server.flush()
    returned = time.monotonic()
    until(lambda: _done(at.board) > done or _done(at.board) == jobs, what="a job to be done after Redis's return")
    took = time.monotonic() - returned
    until(lambda: _done(at.board) == jobs, 300, "all jobs to be done")
    return took


def _post(served: Instance, number: int) -> None:
    """A job by HTTP: each tenth in a process of its own, the others small."""
    params = {"steps": 2, "seconds": 0.05, "chunks": 0, "seed": number} if number % 10 == 0 else SMALL
    body = json.dumps({"kind": "self-test", "params": params}).encode()
    headers = {"authorization": f"Bearer {served.key.strip()}", "content-type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(f"{served.url}/v1/jobs", body, headers), timeout=30).close()


def _done(board: Board) -> int:
    (row,) = board.sql("SELECT count(*) AS n FROM job WHERE state = 'done'")
    return int(row.n)


def _once(board: Board) -> int:
    """Jobs that were ended once, as done, and that had their effect once where they have one.

    An attempt more is nothing: a busy worker gives small jobs back that it had claimed and not begun.
    """
    (row,) = board.sql(
        """SELECT count(*) AS n FROM job j WHERE state = 'done'
           AND (SELECT count(*) FROM fence_note f WHERE f.job_id = j.id AND f.effect = 'done') = 1
           AND (SELECT count(*) FROM job_log l WHERE l.job_id = j.id AND l.message = 'self-test published')
           = CASE WHEN small THEN 0 ELSE 1 END"""
    )
    return int(row.n)
