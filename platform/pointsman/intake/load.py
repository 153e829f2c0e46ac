"""Brings a file into the log, idempotently: read once for what it holds and lacks, then written in transactions.

Of a request log each transaction holds whole rows: request, decision, call and outcome. Of a score table the answers
of one question may be far apart: its decision is written last, when all of them are there. An import that was
interrupted is completed by running it again. Rows that exist are left alone, so a file whose rows have changed
belongs under another name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg

from pointsman.database.engine import psycopg_url
from pointsman.intake.reading import Read, Source
from pointsman.intake.record import Record
from pointsman.intake.rejects import Rejects
from pointsman.intake.rows import Writer, cost_of, moment_of
from pointsman.intake.survey import EVERY, OnLines, Survey, repeat_of, survey
from pointsman.pool import Pool, Worker
from pointsman.redaction import Redactor
from pointsman.replay.identities import ReplayIds
from pointsman.replay.load import batches, check_dataset_name, insert_rows, settle_learn, write_pool
from pointsman.replay.records import Row
from pointsman.replay.source import Repeats

BATCH = 500
NOT_RECORDED = "no recorded outcome"


@dataclass(frozen=True)
class Wish:
    """What is asked for. `configured` are the workers that may lend a name their price and card."""

    source: Source
    dataset: str
    rejects: Path
    learn: bool = True
    redact: Sequence[str] = ()
    store_text: bool = True
    configured: Mapping[str, Worker] | None = None


@dataclass(frozen=True)
class Report:
    """What an import did. `new_rows` is None where it only looked; `priced` costs came from a worker's price."""

    wish: Wish
    survey: Survey
    rejects: Rejects
    pool: Pool
    learn: bool
    priced: int
    new_rows: dict[str, int] | None


def look(wish: Wish, on_lines: OnLines = lambda phase, lines: None) -> Report:
    """Reads the file without writing anything but the rejects."""
    check_dataset_name(wish.dataset)
    made, rejects = survey(wish.source, wish.rejects, on_lines)
    pool = made.pool(wish.dataset, wish.configured or {})
    return Report(wish, made, rejects, pool, wish.learn, 0, None)


def load(
    url: str, wish: Wish, project_id: str, on_lines: OnLines = lambda phase, lines: None, now: datetime | None = None
) -> Report:
    """Reads the file and writes its rows into `project_id`."""
    found = look(wish, on_lines)
    ids = ReplayIds(project_id, wish.dataset)
    writer = Writer(ids, wish.source.form, Redactor(wish.redact), wish.store_text, wish.learn)
    with psycopg.connect(psycopg_url(url), application_name="pointsman-import") as connection:
        run = _Run(connection, found.survey, found.pool, writer)
        write_pool(connection, found.pool, now or datetime.now(UTC), run.new)
        (run.table if wish.source.is_table else run.log)(on_lines)
        learn = settle_learn(connection, ids, wish.learn)
    return Report(wish, found.survey, found.rejects, found.pool, learn, run.priced, dict(run.new))


class _Run:
    """The second reading."""

    def __init__(self, connection: psycopg.Connection[Any], made: Survey, pool: Pool, writer: Writer) -> None:
        self.new: Counter[str] = Counter()
        self.priced = 0
        self._connection = connection
        self._survey = made
        self._pool = pool
        self._writer = writer

    def log(self, on_lines: OnLines) -> None:
        for part in batches(self._records(on_lines), BATCH):
            rows: dict[str, list[Row]] = {name: [] for name in ("episode", "request", "decision", "call", "outcome")}
            for record in part:
                moment = moment_of(record)
                self._answer(rows, record, moment, 0)
                eligible: dict[str, str | None] = {record.model: None}
                rows["request"].append(self._writer.request(record, moment))
                rows["decision"].append(self._decision(record.query, moment, eligible))
                if episode := self._writer.episode(record, moment):
                    rows["episode"].append(episode)
            self._insert(rows)

    def table(self, on_lines: OnLines) -> None:
        repeats, questions = Repeats(), self._survey.questions
        for part in batches(self._records(on_lines), BATCH):
            rows: dict[str, list[Row]] = {"request": [], "call": [], "outcome": []}
            asked: set[str] = set()
            for record in part:
                repeat = repeat_of(self._survey, repeats, record)
                if repeat is None:  # rejected at the first reading
                    continue
                moment = questions[record.query].moment
                self._answer(rows, record, moment, repeat)
                if record.query not in asked:
                    rows["request"].append(self._writer.request(record, moment))
                    asked.add(record.query)
            self._insert(rows)
        for some in batches(questions.items(), BATCH):
            self._insert({"decision": [self._decision(q, at.moment, self._eligible(at.answered)) for q, at in some]})

    def _records(self, on_lines: OnLines) -> Iterator[Record]:
        for number, entry in enumerate(self._survey.source.entries(), 1):
            if number % EVERY == 0:
                on_lines("writing", number)
            if isinstance(entry, Read):
                yield from entry.records

    def _answer(self, rows: dict[str, list[Row]], record: Record, moment: datetime, repeat: int) -> None:
        worker = self._pool.by_name[record.model]
        cost = cost_of(record, worker)
        self.priced += cost is not None and record.cost is None
        rows["call"].append(self._writer.call(record, moment, worker, cost, repeat))
        rows["outcome"].append(self._writer.outcome(record, moment, worker, cost, repeat))

    def _decision(self, query: str, moment: datetime, eligible: dict[str, str | None]) -> Row:
        return self._writer.decision(query, moment, eligible, self._pool.hash, self._pool.cards_hash)

    def _eligible(self, answered: int) -> dict[str, str | None]:
        bits = self._survey.models
        return {name: None if answered >> bits[name] & 1 else NOT_RECORDED for name in self._pool.by_name}

    def _insert(self, rows: Mapping[str, Iterable[Row]]) -> None:
        insert_rows(self._connection, {table: list(some) for table, some in rows.items()}, self.new)
