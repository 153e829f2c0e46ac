"""Has a worker changed silently? A fixed set of tasks, run again day by day, against the scores of its first day.

A day is a probe run. The first one, with two or more answers to every task, enrols; from then on each run is one
observation of `pointsman.statistics.canary`. It is independent of traffic, so a change of the mix cannot look like one
of the worker. A task without an answer that day counts as unchanged, which can only delay an alarm.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
from sqlalchemy import Connection

from pointsman.drift.alarms import About, raise_alarm
from pointsman.drift.state import detector, keep
from pointsman.hashing import text_hash
from pointsman.probing.matrix import Matrix, full_information
from pointsman.statistics.arrays import Floats
from pointsman.statistics.canary import CanarySet

MOST_MISSING = 0.2
"""The share of tasks without an answer from which on a day says nothing."""


def observe_day(connection: Connection, project: str, run: str, now: datetime) -> dict[str, str]:
    """Takes one probe run, by its name; what it was for each worker: `enrolled`, `well`, `alarm`, or why not."""
    matrix = full_information(connection, project, ["probe"], tags=[f"probe:{run}"], learn_only=False)
    return {
        worker: _observe(connection, project, run, matrix, column, worker, now)
        for column, worker in enumerate(matrix.names)
    }


def _observe(
    connection: Connection, project: str, run: str, matrix: Matrix, column: int, worker: str, now: datetime
) -> str:
    endpoint = matrix.workers[column]
    row = detector(connection, project, "silent_update", worker)
    if row is None or row.endpoint_hash != endpoint:
        return _enrol(connection, project, run, matrix, column, worker, now)
    if row.state["last_run"] == run:
        return "taken already"
    canary, items = CanarySet.from_json(row.state["set"]), row.state["items"]
    scores = _today(matrix, column, items, canary.stored)
    if scores is None:
        return "too few answers"
    alarm_id = None if row.alarm_id is None else str(row.alarm_id)
    if canary.observe(scores) and alarm_id is None:
        message = (
            f"worker {worker} answers its canary tasks otherwise than when they were enrolled: mean "
            f"{float(np.mean(scores)):.2f}, then {float(np.mean(canary.stored)):.2f}; the provider may have changed it"
        )
        about = About(worker=worker, endpoint_hash=endpoint)
        alarm_id = raise_alarm(connection, project, "silent_update", message, now, about, {"run": run})
    _keep(connection, project, worker, endpoint, canary, items, run, now, alarm_id)
    return "alarm" if canary.alarm else "well"


def _enrol(
    connection: Connection, project: str, run: str, matrix: Matrix, column: int, worker: str, now: datetime
) -> str:
    scores = matrix.scores[:, column, :]
    whole = np.isfinite(scores).all(axis=1)
    if scores.shape[1] < 2 or not whole.any():
        return "not enrolled: a first day needs two or more answers to every task"
    keys = _keys(matrix)
    items = [keys[n] for n in np.flatnonzero(whole)]
    canary = CanarySet.enrol(scores[whole])
    _keep(connection, project, worker, matrix.workers[column], canary, items, run, now, None)
    return "enrolled"


def _today(matrix: Matrix, column: int, items: Sequence[str], stored: Sequence[float]) -> Floats | None:
    """A score per item, in the order of enrolment; None where too many are missing."""
    means = dict(zip(_keys(matrix), matrix.means[:, column], strict=True))
    scores = np.array([means.get(item, np.nan) for item in items])
    missing = ~np.isfinite(scores)
    if missing.mean() > MOST_MISSING:
        return None
    return np.where(missing, np.array(stored), scores)


def _keys(matrix: Matrix) -> list[str]:
    return [text_hash(text or "") for text in matrix.texts]


def _keep(
    connection: Connection, project: str, worker: str, endpoint: str, canary: CanarySet, items: Sequence[str], run: str,
    now: datetime, alarm_id: str | None,
) -> None:  # fmt: skip
    state: dict[str, Any] = {"set": canary.to_json(), "items": list(items), "last_run": run}
    keep(
        connection, project, "silent_update", worker, state, now, endpoint_hash=endpoint, alarm_id=alarm_id
    )  # fmt: skip
