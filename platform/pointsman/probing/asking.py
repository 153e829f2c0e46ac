"""The engine behind probes and audits: every cell that has no answer yet is asked, and what comes is logged at once.

Calls under way are bounded, each worker has its own queue and pace, so that a slow one holds up nobody. A worker
that fails many cells in a row is given up for this run. Answers are written about twice a second; a run that is
killed loses those of the last moment, and asks them again when it is started again. Nothing is asked twice that
has an answer in the log.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Protocol

import msgspec
from sqlalchemy import Connection, Engine

from pointsman.pool import Pool, Worker
from pointsman.probing.pace import Pace
from pointsman.probing.purse import Purse, PurseEmpty
from pointsman.probing.records import TableRow, answered, cell_rows, decision_rows, write, write_pool
from pointsman.probing.subjects import Cell, Subject
from pointsman.upstream.body import Fields
from pointsman.upstream.price import add
from pointsman.upstream.record import CallRecord
from pointsman.verifiers import verify

GIVE_UP = 5
"""Cells that a worker fails in a row, each with its retries, before it is left alone for the rest of the run."""
WRITE_SECONDS = 0.5


class Watch(Protocol):
    """Who watches a run: a job's context, or a command line's bar. `check` raises to end it."""

    def check(self) -> None: ...

    def progress(self, done: int, total: int | None = None) -> None: ...

    def spend(self, amount: Decimal) -> Decimal: ...


class Nobody:
    """Nobody watches."""

    def check(self) -> None:
        pass

    def progress(self, done: int, total: int | None = None) -> None:
        pass

    def spend(self, amount: Decimal) -> Decimal:
        return amount


class Asks(Protocol):
    """Who calls workers (`pointsman.upstream.direct.Direct`)."""

    async def ask(self, worker: Worker, fields: Fields) -> list[CallRecord]: ...


@dataclass
class Asked:
    """What a run did. `cells` are all that were wanted, `known` those that had an answer before.

    `cost` is in USD, None where a price is unknown; `counted` is what budgets count. `stopped` says why a run ended
    before its end.
    """

    subjects: int = 0
    cells: int = 0
    known: int = 0
    answered: int = 0
    failed: int = 0
    cost: Decimal | None = Decimal(0)
    counted: Decimal = Decimal(0)
    faults: Counter[str] = field(default_factory=Counter)
    given_up: list[str] = field(default_factory=list)
    stopped: str | None = None

    @property
    def left(self) -> int:
        """Cells that still have no answer."""
        return self.cells - self.known - self.answered

    @property
    def done(self) -> int:
        return self.known + self.answered


class Asking:
    """One run over `subjects`."""

    def __init__(
        self,
        subjects: Sequence[Subject],
        pool: Pool,
        asks: Asks,
        engine: Engine,
        *,
        purse: Purse,
        pace: Pace,
        concurrency: int,
        watch: Watch,
        note: Callable[[Connection, Asked], None],
    ) -> None:
        """`note` is told of the run's figures in each transaction that writes answers."""
        self._subjects = subjects
        self._pool = pool
        self._asks = asks
        self._engine = engine
        self._purse = purse
        self._pace = pace
        self._room = asyncio.Semaphore(concurrency)
        self._concurrency = concurrency
        self._watch = watch
        self._note = note
        self._rows: list[TableRow] = []
        self._begun: dict[str, Subject] = {}  # whose decisions are not written yet
        self._logged: set[str] = set()
        self._in_a_row: Counter[str] = Counter()
        self._writing = asyncio.Lock()
        self._paid = Decimal(0)
        self.asked = Asked()

    async def run(self) -> Asked:
        """Asks. What ends it early (the watch, Ctrl-C) passes through, after what came has been written."""
        queues = await asyncio.to_thread(self._todo)
        running = [
            asyncio.create_task(self._serve(iterator))
            for cells in queues.values()
            for iterator in [iter(cells)]
            for _ in range(min(self._concurrency, len(cells)))
        ]
        try:
            await self._until_done(running)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            await self._write()
        return self.asked

    def _todo(self) -> Mapping[str, list[Cell]]:
        """What is left to ask, by worker. Decisions whose answers are all here are made sure of, too."""
        asked = self.asked
        asked.subjects = len(self._subjects)
        cells = [cell for subject in self._subjects for cell in subject.cells()]
        known = answered(self._engine, cells)
        asked.cells, asked.known = len(cells), len(known)
        queues: dict[str, list[Cell]] = {}
        for cell in cells:
            if cell.id not in known:
                queues.setdefault(cell.worker.name, []).append(cell)
            else:
                self._begin(cell.subject)
        with self._engine.begin() as connection:
            write_pool(connection, self._pool)
        self._watch.progress(asked.done, asked.cells)
        return queues

    async def _until_done(self, running: Iterable[asyncio.Task[None]]) -> None:
        pending = set(running)
        while pending:
            finished, pending = await asyncio.wait(pending, timeout=WRITE_SECONDS, return_when=asyncio.FIRST_EXCEPTION)
            for task in finished:
                task.result()  # raises what went wrong in it
            self._watch.check()
            await self._write()

    async def _serve(self, cells: Iterable[Cell]) -> None:
        """One of the callers of a worker: takes the next of its cells until there is none."""
        for cell in cells:
            if self.asked.stopped or cell.worker.name in self.asked.given_up:
                return
            await self._pace.turn(cell.worker.name)
            async with self._room:
                try:
                    await self._ask(cell)
                except PurseEmpty:
                    self.asked.stopped = "the budget is spent"
                    return

    async def _ask(self, cell: Cell) -> None:
        fields = _fields(cell)
        async with self._purse.reserve(cell.worker, fields) as bill:
            records = await self._asks.ask(cell.worker, fields)
            spent: Decimal | None = Decimal(0)
            for record in records:
                spent = add(spent, record.cost)
            bill.settle(spent)
        self.asked.cost = add(self.asked.cost, spent)
        self.asked.counted += bill.paid
        self._paid += bill.paid
        if not records:
            self._count_failure(cell, "not_expressible")
            return
        score = await self._score(cell, records[-1]) if records[-1].status == "ok" else None
        self._rows += cell_rows(cell, records, score)
        self._begin(cell.subject)
        if records[-1].status == "ok":
            self.asked.answered += 1
            self._in_a_row[cell.worker.name] = 0
        else:
            self._count_failure(cell, records[-1].fault or records[-1].status)

    async def _score(self, cell: Cell, record: CallRecord) -> float | None:
        if cell.subject.verifier is None:
            return None
        # A verifier may start a process and wait for it.
        return await asyncio.to_thread(verify, cell.subject.verifier, record.seen.completion or "")

    def _count_failure(self, cell: Cell, fault: str) -> None:
        name = cell.worker.name
        self.asked.failed += 1
        self.asked.faults[fault] += 1
        self._in_a_row[name] += 1
        if self._in_a_row[name] >= GIVE_UP and name not in self.asked.given_up:
            self.asked.given_up.append(name)

    def _begin(self, subject: Subject) -> None:
        if subject.key not in self._logged:
            self._logged.add(subject.key)
            self._begun[subject.key] = subject

    async def _write(self) -> None:
        async with self._writing:
            rows, self._rows = self._rows, []
            begun, self._begun = self._begun, {}
            paid, self._paid = self._paid, Decimal(0)
            if rows or begun:
                rows += [row for subject in begun.values() for row in decision_rows(subject, self._pool)]
                await asyncio.to_thread(self._store, rows)
            self._watch.progress(self.asked.done, self.asked.cells)
            if paid:
                await asyncio.to_thread(self._watch.spend, paid)

    def _store(self, rows: list[TableRow]) -> None:
        with self._engine.begin() as connection:
            write(connection, rows)
            self._note(connection, self.asked)


def clock() -> float:
    """The clock of paces."""
    return time.monotonic()


def _fields(cell: Cell) -> Fields:
    """A repeat carries a seed of its own, so that no cache between us and the model answers it."""
    if cell.repeat == 0:
        return cell.subject.fields
    return {**cell.subject.fields, "seed": msgspec.Raw(str(cell.repeat).encode())}
