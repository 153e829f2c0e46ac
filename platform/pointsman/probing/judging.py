"""A judge's scores for answers that are in the log: of probes, audits, or served traffic.

The judge sees a request only where it was one of those who may answer it; what a probe asks is ours, and anybody's.
Its calls are logged under the decision whose answers it judged, with the purpose `judge`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Engine, Table, and_, exists, or_, select

from pointsman.config import Config
from pointsman.errors import UserError
from pointsman.judge.judging import Judge, JudgeSpec
from pointsman.judge.scores import Scores, score_answers
from pointsman.pool import Pool, Worker
from pointsman.probing.asking import Asks, Nobody, Watch
from pointsman.probing.drawn import HEALTH
from pointsman.probing.purse import Purse, PurseEmpty
from pointsman.probing.records import write
from pointsman.queries.scope import CALL, DECISION, OUTCOME, REQUEST, in_time, of_project
from pointsman.rewards.compute import Window
from pointsman.tables import METADATA
from pointsman.upstream.body import Fields
from pointsman.upstream.price import add
from pointsman.upstream.record import CallRecord
from pointsman.words import Origin

JUDGE_SCORE: Table = METADATA.tables["judge_score"]


@dataclass
class JudgedRows:
    """What a run did: rows whose answers were scored, answers whose score could not be read, USD (`cost` None: a price
    is unknown; `counted` is what budgets count)."""

    rows: int = 0
    scored: int = 0
    unread: int = 0
    cost: Decimal | None = Decimal(0)
    counted: Decimal = Decimal(0)
    left_out: Counter[str] = field(default_factory=Counter)
    stopped: str | None = None


@dataclass(frozen=True)
class _Row:
    """A decision with the answers that this judge has not scored, by call."""

    decision: Any
    answers: dict[str, str]
    workers: dict[str, str]


async def judge_rows(
    spec: JudgeSpec,
    *,
    asks: Asks,
    engine: Engine,
    pool: Pool,
    project_id: str,
    origins: Collection[Origin] = ("audit", "probe"),
    window: Window | None = None,
    include_verified: bool = False,
    budget: Decimal | None = None,
    concurrency: int = 4,
    watch: Watch | None = None,
) -> JudgedRows:
    """Scores what has no score of this judge yet. `include_verified` takes rows that a verifier scored as well: by
    them a judge is calibrated."""
    run = _Run(spec, asks, engine, pool, budget, concurrency, watch or Nobody())
    with engine.connect() as connection:
        rows = _rows(connection, spec, project_id, origins, window or Window(), include_verified, run.judged.left_out)
    return await run.all(rows)


async def judge_as_configured(
    config: Config,
    *,
    asks: Asks,
    engine: Engine,
    project_id: str,
    origins: Collection[Origin] = ("audit", "probe"),
    budget: Decimal | None = None,
    concurrency: int = 4,
    watch: Watch | None = None,
) -> JudgedRows:
    """`judge_rows` with the judge of `[judge]`. Raises `UserError` where none is configured."""
    pool = Pool.of(config)
    spec = JudgeSpec.of(config, pool)
    if spec is None:
        raise UserError("no judge is configured: [judge] worker names the worker that judges")
    return await judge_rows(
        spec,
        asks=asks,
        engine=engine,
        pool=pool,
        project_id=project_id,
        origins=origins,
        budget=budget,
        concurrency=concurrency,
        watch=watch,
    )


class _Run:
    def __init__(
        self,
        spec: JudgeSpec,
        asks: Asks,
        engine: Engine,
        pool: Pool,
        budget: Decimal | None,
        concurrency: int,
        watch: Watch,
    ) -> None:
        self._judge = Judge(spec, self._ask)
        self._asks = asks
        self._engine = engine
        self._purse = Purse(budget, pool)
        self._room = asyncio.Semaphore(concurrency)
        self._watch = watch
        self.judged = JudgedRows()

    async def all(self, rows: Sequence[_Row]) -> JudgedRows:
        tasks = [asyncio.create_task(self._one(row, len(rows))) for row in rows]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return self.judged

    async def _one(self, row: _Row, total: int) -> None:
        async with self._room:
            if self.judged.stopped:
                return
            self._watch.check()
            try:
                made = await score_answers(self._judge, row.decision.text, row.answers)
            except PurseEmpty:
                self.judged.stopped = "the budget is spent"
                return
            await asyncio.to_thread(self._store, row, made)
            self.judged.rows += 1
            self._watch.progress(self.judged.rows, total)

    async def _ask(self, worker: Worker, fields: Fields) -> list[CallRecord]:
        async with self._purse.reserve(worker, fields) as bill:
            records = await self._asks.ask(worker, fields)
            spent: Decimal | None = Decimal(0)
            for record in records:
                spent = add(spent, record.cost)
            bill.settle(spent)
        self.judged.cost = add(self.judged.cost, spent)
        self.judged.counted += bill.paid
        await asyncio.to_thread(self._watch.spend, bill.paid)
        return records

    def _store(self, row: _Row, made: Scores) -> None:
        spec, decision, now = self._judge.spec, row.decision, datetime.now(UTC)
        mine = (str(decision.project_id), str(decision.id), str(decision.request_id))
        calls = [("call", {**r.row(*mine, store_text=True), "purpose": "judge"}) for r in made.records]
        scores = [
            {
                "judge_hash": spec.hash,
                "call_id": call_id,
                "project_id": mine[0],
                "decision_id": mine[1],
                "worker": row.workers[call_id],
                "judge_worker": spec.worker.name,
                "mode": spec.mode,
                "score": score,
                "detail": made.detail.get(call_id),
                "created_at": now,
            }
            for call_id, score in made.scores.items()
        ]
        with self._engine.begin() as connection:
            write(connection, [*calls, *(("judge_score", score) for score in scores)])
        self.judged.scored += sum(score is not None for score in made.scores.values())
        self.judged.unread += sum(score is None for score in made.scores.values())


def _rows(
    connection: Connection,
    spec: JudgeSpec,
    project_id: str,
    origins: Collection[Origin],
    window: Window,
    include_verified: bool,
    left_out: Counter[str],
) -> list[_Row]:
    d, r, c, o, j = DECISION.c, REQUEST.c, CALL.c, OUTCOME.c, JUDGE_SCORE.c
    mine = or_(o.call_id == c.id, and_(o.call_id.is_(None), o.worker == c.worker, c.purpose == "serve"))
    joined = (
        DECISION.join(REQUEST, r.id == d.request_id)
        .join(OUTCOME, o.decision_id == d.id)
        .join(CALL, and_(c.decision_id == d.id, c.status == "ok", mine))
    )
    columns = (
        d.id, d.project_id, d.request_id, d.origin, d.eligible, r.text,
        c.id.label("call_id"), c.worker, c.completion,
    )  # fmt: skip
    known = exists(select(j.call_id).where(j.call_id == c.id, j.judge_hash == spec.hash))
    query = (
        select(*columns)
        .select_from(joined)
        .where(
            of_project(DECISION, project_id),
            in_time(d.id, window.since, window.until),
            d.origin.in_(list(origins)),
            o.status == "ok",
            r.learn,
            r.text.is_not(None),
            c.completion.is_not(None),
            ~known,
        )
        .order_by(d.id, c.worker, c.repeat)
    )
    if not include_verified:
        query = query.where(o.score.is_(None))
    by_decision: dict[UUID, _Row] = {}
    for row in connection.execute(query):
        if row.origin != "probe" and row.eligible.get(spec.worker.name, "absent") not in (None, HEALTH):
            left_out["judge_not_eligible"] += 1
            continue
        made = by_decision.setdefault(row.id, _Row(row, {}, {}))
        made.answers[str(row.call_id)] = row.completion
        made.workers[str(row.call_id)] = row.worker
    return list(by_decision.values())
