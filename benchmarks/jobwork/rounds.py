"""Rounds of harm while jobs of every kind run: nothing lost, nothing done twice, the same file as undisturbed.

In each round a long job, ten small ones and two of other kinds are queued, something is killed, and a small
job is queued behind the harm. `recovered_s` is the time from the harm until that one is done and the long
job has moved on. A round ends when all its jobs have; each must end as it did undisturbed.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from sqlalchemy.exc import DBAPIError

from benchmarks.jobwork.harm import HARMS, Ground
from benchmarks.jobwork.kinds import KINDS, LONG, MANY, SMALL, kinds_of, start
from benchmarks.jobwork.machine import Board, until
from benchmarks.jobwork.scene import Scene
from pointsman.jobs.view import JobView

ROUND_SECONDS = 180.0
LATEST_HARM = 2.5
SAME = {kind.name: kind.same for kind in KINDS}


@dataclass
class Tally:
    """What was found."""

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    recovered: list[float] = field(default_factory=list)
    attempts: Counter[int] = field(default_factory=Counter)


def kill_rounds(at: Scene, rounds: int, seed: int = 1) -> dict[str, Any]:
    """The figures; `lost` and `doubled` say what and why where they are not 0."""
    ground = Ground(at, at.home("concurrency = 2\nprobe_concurrency = 1\n"), Random(seed))
    wanted = _undisturbed(at.board)
    tally = Tally()
    for number in range(rounds):
        _round(ground, number, wanted, tally)
    tally.doubled += _fences(at.board)
    code = ground.worker.stop()
    return {
        "kill_rounds": rounds,
        "lost": len(tally.lost),
        "doubled": len(tally.doubled),
        "recovered_s_max": round(max(tally.recovered), 2),
        "recovered_s_median": round(sorted(tally.recovered)[len(tally.recovered) // 2], 2),
        "attempts": dict(sorted(tally.attempts.items())),
        "what": tally.lost + tally.doubled,
        "exit_code": code,
    }


def _undisturbed(board: Board) -> dict[str, JobView]:
    """How each kind ends when nothing happens."""
    ends = {"self-test": board.ended(start(board, "self-test", LONG | {"seconds": 0}), ROUND_SECONDS)}
    for kind in KINDS:
        ends[kind.name] = board.ended(start(board, kind.name, kind.params(0, ends)), ROUND_SECONDS)
    bad = {name: f"{job.state}: {job.reason}" for name, job in ends.items() if job.state not in ("done", "skipped")}
    if bad:
        raise SystemExit(f"these end badly even when nothing happens: {bad}")
    return ends


def _round(ground: Ground, number: int, wanted: dict[str, JobView], tally: Tally) -> None:
    board = ground.at.board
    harm = list(HARMS)[number % len(HARMS)]
    long = start(board, "self-test", LONG)
    others = [(kind, start(board, kind.name, kind.params(number + 1, wanted))) for kind in kinds_of(number)]
    small = board.start_many(MANY, **SMALL)
    time.sleep(ground.rng.uniform(0, LATEST_HARM))
    before = board.jobs.get(long)
    since = time.monotonic()
    HARMS[harm](ground)
    tally.recovered.append(_recovered(board, before, since))
    where = f"round {number}, {harm}"
    try:
        ends = {job_id: board.ended(job_id, ROUND_SECONDS) for job_id in (long, *small, *(j for _, j in others))}
    except AssertionError as error:
        tally.lost.append(f"{where}: {error}")
        return
    for job in ends.values():
        tally.attempts[job.attempt] += 1
        if (wrong := _wrong(board, job, wanted, job.id == long)) is not None:
            tally.lost.append(f"{where}: {wrong}")
    if board.effects(long) > 1:
        tally.doubled.append(f"{where}: the effect of {long} was had {board.effects(long)} times")
    tally.doubled += [f"{where}: {kind.name} {job_id}" for kind, job_id in others if kind.doubled(board, ends[job_id])]


def _wrong(board: Board, job: JobView, wanted: dict[str, JobView], is_long: bool) -> str | None:
    """What is not as it was undisturbed, with the last that the job said; None where all is."""
    ok = job.state == wanted[job.kind].state
    if is_long:
        ok = ok and (job.result or {}).get("file") == (wanted[job.kind].result or {})["file"]
        ok = ok and board.effects(job.id) == 1
    if (same := SAME.get(job.kind)) is not None:
        ok = ok and same(board, job) == same(board, wanted[job.kind])
    if ok:
        return None
    said = [line.message or "" for line in board.jobs.logs(job.id)][-1:]
    return f"{job.kind} {job.id} is {job.state} ({job.reason}), result {job.result}, it said {said}"


def _recovered(board: Board, before: JobView, since: float) -> float:
    """Seconds until a small job that is queued now is done and the long one has moved on."""
    after = _patiently(lambda: board.start(priority=10, **SMALL))
    until(lambda: _patiently(lambda: board.jobs.get(after).finished), ROUND_SECONDS, "the small job after the harm")
    until(lambda: _patiently(lambda: _moved(before, board.jobs.get(before.id))), ROUND_SECONDS, "the long job to move")
    return time.monotonic() - since


def _moved(before: JobView, now: JobView) -> bool:
    if now.finished:
        return True
    return now.state == "running" and (now.stage, now.done) != (before.stage, before.done) and now.done is not None


def _patiently(ask: Any) -> Any:
    """Postgres may only be coming back: the engine's old connections are dead."""
    for _ in range(50):
        try:
            return ask()
        except DBAPIError:
            time.sleep(0.2)
    return ask()


def _fences(board: Board) -> list[str]:
    """Claims that did not follow each other one by one, and effects that were published under two fences."""
    torn = board.sql("SELECT job_id FROM fence_note WHERE effect IS NULL AND fence <> before + 1")
    twice = board.sql(
        "SELECT job_id, effect FROM fence_note WHERE effect IS NOT NULL GROUP BY job_id, effect HAVING count(*) > 1"
    )
    return [f"fences of {row.job_id}" for row in torn] + [f"effect {row.effect} of {row.job_id}" for row in twice]
