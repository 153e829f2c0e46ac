"""Brings a recorded data set into the log as full-information rows, idempotently.

The folder is checked whole before the first row is written. Then calls and outcomes go in, and after
them requests and decisions, in transactions of `batch` rows: a decision that is there has all its
outcomes. An import that was interrupted is completed by running it again; rows that exist are left
alone, so a data set whose rows have changed belongs under another name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import psycopg

from pointsman.database.copy import copy_rows
from pointsman.database.engine import psycopg_url
from pointsman.errors import UserError
from pointsman.ids import content_id
from pointsman.pool import Pool
from pointsman.replay.identities import ReplayIds
from pointsman.replay.models import cost_of
from pointsman.replay.records import Row, call_row, dataset_tag, decision_row, outcome_row, pool_rows, request_row
from pointsman.replay.survey import OnProgress, Progress, Survey, survey_folder
from pointsman.replay.tally import Numbers

Connection = psycopg.Connection[Any]
Item = TypeVar("Item")
_DATASET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

_ANY_WITHDRAWN = "SELECT 1 FROM request WHERE project_id = %(project)s AND tags @> %(tags)s AND NOT learn LIMIT 1"
_WITHDRAW = "UPDATE request SET learn = false WHERE project_id = %(project)s AND tags @> %(tags)s AND learn"


@dataclass(frozen=True)
class ImportReport:
    """What was read, and how many rows of each table were new. `numbers` are the file's.

    `learn` is what the log holds after the import: a data set that was once marked as not to be
    learned from stays so, whatever a later import asks for.
    """

    dataset: str
    project_id: str
    learn: bool
    pool: Pool
    numbers: Numbers
    new_rows: dict[str, int]

    @property
    def queries(self) -> int:
        return self.numbers.queries

    @property
    def outcomes(self) -> int:
        return self.numbers.outcomes


def import_folder(
    url: str,
    folder: Path,
    *,
    project_id: str,
    name: str,
    learn: bool = True,
    batch: int = 500,
    on_progress: OnProgress = lambda progress: None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> ImportReport:
    """Imports `folder` as the data set `name`. `learn=False` marks its requests as not to be learned from."""
    check_dataset_name(name)
    survey = survey_folder(folder, name, on_progress=on_progress)
    ids = ReplayIds(project_id, name)
    new: Counter[str] = Counter()
    with psycopg.connect(psycopg_url(url), application_name="pointsman-import") as connection:
        write_pool(connection, survey.pool, now(), new)
        _write_outcomes(connection, survey, ids, batch, on_progress, new)
        _write_queries(connection, survey, ids, batch, learn, on_progress, new)
        learn = settle_learn(connection, ids, learn)
    return ImportReport(name, project_id, learn, survey.pool, survey.numbers, dict(new))


def check_dataset_name(name: str) -> None:
    """`UserError` for a name that a tag, a file and an id could not carry."""
    if not _DATASET_NAME.fullmatch(name):
        raise UserError(f"data set name: expected letters, digits and ._- (100 at most), got {name!r}")


def write_pool(connection: Connection, pool: Pool, now: datetime, new: Counter[str]) -> None:
    """The rows by which the log knows the pool and its workers."""
    rows: dict[str, list[Row]] = {
        "worker": [
            {"id": content_id("worker", worker.name), "name": worker.name, "created_at": now} for worker in pool.workers
        ],
        "pool_snapshot": [{"hash": pool.hash, "content": pool.content, "created_at": now}],
    }
    for worker in pool.workers:
        for table, more in pool_rows(worker, now).items():
            rows.setdefault(table, []).extend(more)
    insert_rows(connection, rows, new)


def _write_outcomes(
    connection: Connection, survey: Survey, ids: ReplayIds, batch: int, on_progress: OnProgress, new: Counter[str]
) -> None:
    workers = survey.pool.by_name
    numbers_of = {query_id: number for number, query_id in enumerate(survey.moments)}
    done = 0
    for part in batches(survey.folder.outcomes(numbers_of), batch):
        rows: dict[str, list[Row]] = {"call": [], "outcome": []}
        for outcome in part:
            moment, worker = survey.moments[outcome.query_id], workers[outcome.model]
            cost = cost_of(outcome, worker.price)
            rows["call"].append(call_row(ids, outcome, moment, worker, cost))
            rows["outcome"].append(outcome_row(ids, outcome, moment, worker, cost))
        insert_rows(connection, rows, new)
        done += len(part)
        on_progress(Progress("outcomes", done, survey.numbers.outcomes))


def _write_queries(
    connection: Connection,
    survey: Survey,
    ids: ReplayIds,
    batch: int,
    learn: bool,
    on_progress: OnProgress,
    new: Counter[str],
) -> None:
    done = 0
    for part in batches(survey.folder.queries(), batch):
        rows: dict[str, list[Row]] = {"request": [], "decision": []}
        for query in part:
            moment, eligible = survey.moments[query.id], survey.eligible(query.id)
            rows["request"].append(request_row(ids, query, moment, learn=learn))
            rows["decision"].append(
                decision_row(ids, query.id, moment, eligible, survey.pool.hash, survey.pool.cards_hash)
            )
        insert_rows(connection, rows, new)
        done += len(part)
        on_progress(Progress("queries", done, survey.numbers.queries))


def settle_learn(connection: Connection, ids: ReplayIds, learn: bool) -> bool:
    """Withdraws all rows of the data set where this or any earlier import said so; returns what holds now."""
    owned = {"project": ids.project_id, "tags": [dataset_tag(ids.dataset)]}
    with connection.transaction():
        if learn and connection.execute(_ANY_WITHDRAWN, owned).fetchone() is None:
            return True
        connection.execute(_WITHDRAW, owned)
        return False


def insert_rows(connection: Connection, rows: dict[str, list[Row]], new: Counter[str]) -> None:
    """Rows by table, in one transaction; counts those that are new."""
    with connection.transaction():
        for table, table_rows in rows.items():
            new[table] += copy_rows(connection, table, table_rows)


def batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """`items` in lists of `size`."""
    iterator = iter(items)
    while part := list(islice(iterator, size)):
        yield part
