"""The kinds of jobs that run in the kill rounds: what each is told, and what must be true when all is over.

Every kind that needs nothing but this machine runs. Training kinds of the room `distill` are exercised by
its own benchmarks; here their part is played by `self-test`, whose file must be the same byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.jobwork.machine import Board
from benchmarks.jobwork.scene import TASKS
from pointsman.jobs.view import JobView

LONG: dict[str, Any] = {"steps": 40, "seconds": 0.05, "chunks": 12, "chunk_seconds": 0.1, "seed": 11}
SMALL: dict[str, Any] = {"steps": 2, "seconds": 0.0, "chunks": 0, "small": True}
MANY = 10


@dataclass(frozen=True)
class Kind:
    """Parameters by the round's number, and how often its effect was had beyond once."""

    name: str
    params: Callable[[int], dict[str, Any]]
    doubled: Callable[[Board, JobView], int] = lambda board, job: 0


def _twice_asked(board: Board, job: JobView) -> int:
    """Answers of one worker to one task beyond the first, in a probe's run."""
    (row,) = board.sql(
        """SELECT coalesce(sum(n - 1), 0) AS n FROM (
             SELECT count(*) AS n FROM request r JOIN decision d ON d.request_id = r.id JOIN outcome o
               ON o.decision_id = d.id JOIN call c ON c.id = o.call_id
             WHERE r.tags @> CAST(ARRAY[:tag] AS text[]) GROUP BY md5(r.text), c.worker) counted""",
        tag=f"probe:{job.params['name']}",
    )
    return int(row.n)


KINDS = (
    Kind("probe", lambda n: {"file": TASKS, "name": f"round-{n}", "concurrency": 2}, _twice_asked),
    Kind("drift", lambda n: {}),
    Kind("audit", lambda n: {}),
    Kind("canary", lambda n: {"file": TASKS, "concurrency": 2}),
    Kind("gates", lambda n: {}),
    Kind("retention", lambda n: {"days": 36_500}),
    Kind("optimize", lambda n: {"run": "undisturbed", "calls": 12, "seed": n, "origins": ["probe"]}),
)


def kinds_of(number: int) -> list[Kind]:
    """The two other kinds of a round: in four rounds each had its turn."""
    return [KINDS[2 * number % len(KINDS)], KINDS[(2 * number + 1) % len(KINDS)]]


def start(board: Board, kind: str, params: dict[str, Any]) -> str:
    """A job's id."""
    return board.jobs.start(kind, params, project_id=board.project_id, asked_by="benchmark").id
