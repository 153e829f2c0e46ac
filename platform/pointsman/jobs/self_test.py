"""The runner of `self-test`: everything that jobs can do, in small, with a result that must never differ.

Steps hash on from the digest of the step before and keep it each time; parts are hashed wherever a worker
is free; the file says both. Killed at any point and begun again, it must write the same bytes, and its
effect (one line in the log) must be there once. With a fault it fails, skips or dies as it is told.
"""

from __future__ import annotations

import json
import os
import time
from decimal import Decimal
from hashlib import pbkdf2_hmac, sha256
from typing import Any

from sqlalchemy import Connection, func, insert

from pointsman.ids import new_id
from pointsman.jobs.context import JobContext
from pointsman.jobs.kinds import SelfTest
from pointsman.jobs.runners import JobRunner
from pointsman.tables import JobLogRow

FILE = "self-test.json"
EFFECT = "self-test published"
_ROUNDS_PER_SECOND = 1_000_000

_lines = JobLogRow.__table__  # type: ignore[attr-defined]


def run(context: JobContext, params: SelfTest) -> dict[str, Any]:
    digest = _steps(context, params)
    if params.small:
        return {"digest": digest}
    parts = _parts(context, params)
    with context.stage("publish") as stage:
        if stage.todo:
            content = {"seed": params.seed, "digest": digest, "parts": parts}
            context.artifacts.put_bytes(FILE, json.dumps(content, sort_keys=True).encode())
            context.publish("line", lambda connection: _say(connection, context))
    file = context.artifacts.find(FILE)
    return {"digest": digest, "parts": parts, "file": file.hash if file else None}


def part(context: JobContext, params: SelfTest, item: int) -> str:
    """One part: its digest."""
    _go_wrong(context, params, params.steps + item)
    time.sleep(params.chunk_seconds)
    return _digest(params.seed, "part", item)


RUNNER = JobRunner(run, part)


def _steps(context: JobContext, params: SelfTest) -> str:
    begun = (0, _digest(params.seed, "begin", 0)) if params.small else context.checkpoint.get("steps")
    done, digest = begun or (0, _digest(params.seed, "begin", 0))
    with context.stage("steps"):
        for step in range(done, params.steps):
            context.check()
            _go_wrong(context, params, step)
            _pass_time(params)
            digest = _digest(params.seed, digest, step)
            if not params.small:
                _keep(context, params, step, digest)
    return digest


def _keep(context: JobContext, params: SelfTest, step: int, digest: str) -> None:
    context.checkpoint.set("steps", (step + 1, digest))
    context.progress(step + 1, params.steps)
    context.metric("step", step, float(int(digest[:8], 16)))
    if params.cost:
        context.spend(Decimal(str(params.cost)))


def _parts(context: JobContext, params: SelfTest) -> str:
    """One digest of all parts, in their order."""
    with context.stage("chunks") as stage:
        items = range(params.chunks) if stage.todo else ()
        found = context.fan_out("chunks", items, concurrency=params.concurrency)
        return _digest(params.seed, "".join(found), params.chunks)


def _pass_time(params: SelfTest) -> None:
    if not params.seconds:
        return
    if params.load == "sleep":
        time.sleep(params.seconds)
    else:
        # One call into native code that nothing can interrupt from within the interpreter.
        pbkdf2_hmac("sha256", b"self-test", b"salt", max(int(params.seconds * _ROUNDS_PER_SECOND), 1))


def _go_wrong(context: JobContext, params: SelfTest, at: int) -> None:
    if params.fault == "none" or at != params.fault_at:
        return
    if params.fault == "skip":
        context.skip("it was told to skip")
    if params.fault == "error":
        raise ValueError(f"it was told to fail at {at}")
    if params.fault == "exit":
        os._exit(17)
    os.abort()


def _digest(seed: int, before: str, at: int) -> str:
    return sha256(f"{seed} {before} {at}".encode()).hexdigest()


def _say(connection: Connection, context: JobContext) -> str:
    row = {"id": new_id(), "job_id": context.job_id, "attempt": context.attempt, "level": "info", "message": EFFECT}
    connection.execute(insert(_lines).values(row | {"at": func.clock_timestamp()}))
    return EFFECT
