"""The kinds of jobs that run in the kill rounds: what each is told, and what must be true when all is over.

Every kind that needs nothing but this machine runs. What is deterministic must come out the same, byte for
byte, as undisturbed: the file of `self-test`, the hash of `labels`, the numbers that `train` found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.jobwork.machine import Board
from benchmarks.jobwork.scene import MORE_TASKS, TASKS
from pointsman.jobs.view import JobView

LONG: dict[str, Any] = {"steps": 40, "seconds": 0.05, "chunks": 12, "chunk_seconds": 0.1, "seed": 11}
SMALL: dict[str, Any] = {"steps": 2, "seconds": 0.0, "chunks": 0, "small": True}
MANY = 10
RUN = "undisturbed"


Found = Mapping[str, JobView]
"""The undisturbed jobs that have ended, by their kinds."""


@dataclass(frozen=True)
class Kind:
    """Parameters by the round's number (0: undisturbed) and what was found before it; how often its effect was had
    beyond once; and what of its result must be as undisturbed."""

    name: str
    params: Callable[[int, Found], dict[str, Any]]
    doubled: Callable[[Board, JobView], int] = lambda board, job: 0
    same: Callable[[Board, JobView], Any] = lambda board, job: None


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


def _asked(number: int) -> dict[str, str]:
    """The undisturbed probe asks enough to learn from."""
    return {"file": TASKS, "name": f"round-{number}"} if number else {"file": MORE_TASKS, "name": RUN}


def _label_set(found: Found) -> dict[str, Any]:
    return {"labels": (found["labels"].result or {})["label_set"]}


def _numbers(board: Board, job: JobView) -> list[tuple[str, str]]:
    """The hashes of a router's tensors."""
    return [(one.name, one.hash) for one in board.jobs.artifacts(job.id) if one.suffix == ".safetensors"]


KINDS = (
    Kind("probe", lambda n, found: {**_asked(n), "concurrency": 2}, _twice_asked),
    Kind("drift", lambda n, found: {}),
    Kind("audit", lambda n, found: {}),
    Kind("canary", lambda n, found: {"file": TASKS, "concurrency": 2}),
    Kind("gates", lambda n, found: {}),
    Kind("retention", lambda n, found: {"days": 36_500}),
    Kind("rollup", lambda n, found: {}),
    Kind("rewards", lambda n, found: {"sweep": True}),
    Kind("flywheel", lambda n, found: {}),
    Kind("optimize", lambda n, found: {"run": RUN, "calls": 12, "seed": n, "origins": ["probe"]}),
    Kind(
        "labels",
        lambda n, found: {"run": RUN, "origins": ["probe"], "encoder": "text", "toy": True},
        same=lambda board, job: (job.result or {})["hash"],
    ),
    Kind("train", lambda n, found: {**_label_set(found), "method": "linear", "candidate": False}, same=_numbers),
    Kind("evaluate", lambda n, found: {**_label_set(found), "ablations": False}),
)
"""In the order in which they are run undisturbed: later ones learn from what the first asked."""

ELSEWHERE = {
    "self-test": "in every round: a long one, and ten small ones",
    "evolve": "needs a learned router, and with it a backbone's weights",
    "conductor_data": "asks whole teams: minutes, for which a kill round has no time",
    "conductor_sft": "needs a language model's weights",
    "conductor_grpo": "needs a language model's weights",
}
"""Kinds that the rounds do not run, and why."""


def kinds_of(number: int) -> list[Kind]:
    """The two other kinds of a round: each has its turn again and again, under ever other harms."""
    return [KINDS[2 * number % len(KINDS)], KINDS[(2 * number + 1) % len(KINDS)]]


def start(board: Board, kind: str, params: dict[str, Any]) -> str:
    """A job's id."""
    return board.jobs.start(kind, params, project_id=board.project_id, asked_by="benchmark").id
