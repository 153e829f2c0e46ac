"""What the newest evaluation says of a router version: its value on rows that no training saw, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Table, select

from pointsman.promotion.versions import StoredVersion
from pointsman.queries.scope import of_project
from pointsman.tables import METADATA

JOB: Table = METADATA.tables["job"]
NEWEST = 200


@dataclass(frozen=True)
class Evaluation:
    """`line` is the version's line of the comparison, `frame` what it is compared with, over `rows` requests."""

    job: str
    ended_at: datetime
    label_set: str
    rows: int
    basis: str
    frame: dict[str, Any]
    line: dict[str, Any]


def newest_evaluation(connection: Connection, project: str, version: StoredVersion) -> Evaluation | None:
    """Of the project's `evaluate` jobs that compared the version; None where none did."""
    j = JOB.c
    jobs = connection.execute(
        select(j.id, j.ended_at, j.result)
        .where(of_project(JOB, project), j.kind == "evaluate", j.state == "done", j.result.is_not(None))
        .order_by(j.ended_at.desc())
        .limit(NEWEST)
    )
    name = f"{version.kind} {version.id[:8]}"
    for job in jobs:
        told = job.result
        if version.id not in told.get("routers", ()):
            continue
        for line in told.get("comparison", ()):
            if line.get("router") == name:
                return Evaluation(
                    str(job.id), job.ended_at, told["label_set"], told["rows"], told["basis"], told["frame"], line
                )
    return None
