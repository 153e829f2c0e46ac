"""50,000 small jobs, ten duplicates of each of 100 of them, two workers, and urgent jobs behind all of it.

Orders and duplicates come in one by one batch while the workers run; a duplicate has to be answered with the
job that is there. The rate is of the whole: from the moment that all are queued until none is left.
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks.jobwork.machine import Board, until
from benchmarks.jobwork.scene import Scene
from pointsman.jobs.store import Order

JOBS = 50_000
TWINS = 100
COPIES = 10
TOGETHER = 5_000
URGENT = 5
PATIENCE = 900.0
SMALL = {"steps": 1, "seconds": 0.0, "chunks": 0, "small": True}


def drain(at: Scene, jobs: int = JOBS) -> dict[str, Any]:
    """The figures; `lost` and `doubled` count jobs that were not run, and jobs that were run twice."""
    board = at.board
    first = _fill(board, jobs)
    homes = [at.home("concurrency = 1\n")]
    homes.append(homes[0] if at.server is None else at.home("concurrency = 1\n"))
    workers = [home.worker("--queues", "default", ready=False) for home in homes]
    until(lambda: _left(board) < jobs - 1, PATIENCE, "the first jobs to end")
    began, before = time.monotonic(), _left(board)
    waits = []
    while (left := _left(board)) and time.monotonic() < began + PATIENCE:
        if len(waits) < URGENT and left > jobs // 10:
            waits.append(_urgent(board))
        time.sleep(0.1)
    took = time.monotonic() - began
    (ran,) = board.sql(
        "SELECT count(*) FILTER (WHERE state <> 'done') AS lost, count(*) FILTER (WHERE attempt > 1) AS doubled"
        " FROM job"
    )
    memory = at.server.memory() if hasattr(at.server, "memory") else None
    if at.server is None:
        memory = int(homes[0].broker.info("memory")["used_memory"])
    codes = [worker.stop() for worker in workers]
    return first | {
        "jobs": jobs,
        "drain_per_s": round(before / took, 1),
        "urgent_s": round(max(waits), 3) if waits else None,
        "lost": ran.lost,
        "doubled": ran.doubled,
        "broker_mb": None if memory is None else round(memory / 1e6, 1),
        "bloat": _bloat(board),
        "exit_codes": codes,
    }


def _fill(board: Board, jobs: int) -> dict[str, Any]:
    """Queues everything; how fast, and how many rows the duplicates made (0)."""
    began = time.monotonic()
    queued = 0
    for start in range(0, jobs, TOGETHER):
        orders = [Order(SMALL | {"seed": n}, f"job {n}") for n in range(start, min(start + TOGETHER, jobs))]
        queued += len(_many(board, orders))
    rate = queued / (time.monotonic() - began)
    twins = [Order(SMALL | {"seed": n}, f"job {n}") for n in range(min(TWINS, jobs))]
    made = sum(len(_many(board, twins)) for _ in range(COPIES))
    (row,) = board.sql("SELECT count(*) AS n FROM job")
    return {"enqueued_per_s": round(rate, 1), "duplicates_made": made + row.n - jobs}


def _many(board: Board, orders: list[Order]) -> list[str]:
    return board.jobs.start_many("self-test", orders, project_id=board.project_id, asked_by="benchmark")


def _urgent(board: Board) -> float:
    """Seconds from an urgent job's row to its start."""
    job = board.ended(board.start(priority=100, **SMALL))
    assert job.started_at is not None
    return (job.started_at - job.created_at).total_seconds()


def _left(board: Board) -> int:
    (row,) = board.sql("SELECT count(*) AS n FROM job WHERE state IN ('queued', 'running')")
    return int(row.n)


def _bloat(board: Board) -> float:
    """The table of jobs with its indexes after a vacuum as the server's own does it, by its size without any gap."""
    sizes = []
    with board.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for vacuum in ("VACUUM job", "VACUUM FULL job"):
            connection.exec_driver_sql(vacuum)
            sizes.append(connection.exec_driver_sql("SELECT pg_total_relation_size('job')").scalar_one())
    return round(sizes[0] / sizes[1], 2)
