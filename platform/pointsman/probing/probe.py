"""Probes: every worker answers every task, as often as is asked for, and its verifier scores the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Engine

from pointsman.config import Config
from pointsman.errors import UserError
from pointsman.hashing import content_hash
from pointsman.pool import Pool, Worker
from pointsman.probing import runs
from pointsman.probing.asking import Asked, Asking, Asks, Nobody, Watch, clock
from pointsman.probing.pace import Pace
from pointsman.probing.purse import Purse
from pointsman.probing.records import request_row
from pointsman.probing.subjects import Subject, request_id
from pointsman.probing.tasks import ProbeTask
from pointsman.upstream.direct import chat_fields

ELIGIBILITY_REASON = "not_allowed"


@dataclass(frozen=True)
class Terms:
    """How probes and audits ask. `per_minute` bounds the requests to each worker, `budget` (USD) those of the run."""

    concurrency: int = 8
    per_minute: float | None = None
    budget: Decimal | None = None


async def probe(
    tasks: Sequence[ProbeTask],
    *,
    config: Config,
    asks: Asks,
    engine: Engine,
    project_id: str,
    name: str,
    repeats: int = 1,
    workers: Sequence[str] = (),
    terms: Terms | None = None,
    watch: Watch | None = None,
    now: datetime | None = None,
) -> Asked:
    """Probes `workers` (none named: all that chat) with `tasks`.

    `name` names the run: started again with the same tasks it goes on where it stopped, and asks again what had
    failed. Another name asks everything anew.
    """
    pool, terms, moment = Pool.of(config), terms or Terms(), now or datetime.now(UTC)
    chosen = chosen_workers(pool, workers)
    # Workers may join a run later; what is asked, and how often, may not change under its name.
    settings = {"tasks": content_hash([task.hash for task in tasks]), "repeats": repeats}
    run = runs.begin(engine, project_id, "probe", name, settings, moment)
    subjects = [_subject(task, run, project_id, pool, chosen, repeats) for task in tasks]
    return await ask_under(run, subjects, pool, asks, engine, terms, watch or Nobody())


async def ask_under(
    run: runs.Run,
    subjects: Sequence[Subject],
    pool: Pool,
    asks: Asks,
    engine: Engine,
    terms: Terms,
    watch: Watch,
) -> Asked:
    """Asks, and keeps the run's row up to date whatever ends it."""
    asking = Asking(
        subjects,
        pool,
        asks,
        engine,
        purse=Purse(terms.budget, pool),
        pace=Pace(terms.per_minute, clock=clock),
        concurrency=terms.concurrency,
        watch=watch,
        note=run.note,
    )
    with runs.alone(engine, run):
        try:
            asked = await asking.run()
        except BaseException as error:
            runs.break_off(engine, run, type(error).__name__, datetime.now(UTC))
            raise
        runs.end(engine, run, asked, datetime.now(UTC))
    return asked


def chosen_workers(pool: Pool, names: Sequence[str]) -> tuple[Worker, ...]:
    """The workers of these names, else all that chat. Raises `UserError` for a name that is no worker's."""
    if unknown := [name for name in names if name not in pool.by_name]:
        raise UserError(f"{unknown[0]!r} is no worker, expected some of {', '.join(pool.by_name)}")
    chosen = pool.named(names) if names else pool.workers
    chosen = tuple(worker for worker in chosen if worker.capabilities != frozenset({"embeddings"}))
    if not chosen:
        raise UserError("no worker of those can chat: they make embeddings only")
    return chosen


def _subject(
    task: ProbeTask, run: runs.Run, project_id: str, pool: Pool, workers: Sequence[Worker], repeats: int
) -> Subject:
    key = f"probe/{run.id}/{task.hash}"
    identity = request_id(run.started_at, project_id, key)
    body: dict[str, Any] = {"messages": list(task.messages)}
    names = {worker.name for worker in workers}
    return Subject(
        key=key,
        origin="probe",
        project_id=project_id,
        moment=run.started_at,
        request_id=identity,
        fields=chat_fields(body),
        workers=tuple(workers),
        eligible={w.name: None if w.name in names else ELIGIBILITY_REASON for w in pool.workers},
        repeats=repeats,
        verifier=task.verifier,
        request=request_row(
            identity,
            project_id,
            run.started_at,
            task.text,
            body,
            hints={"probe": {"run": run.name, "task_id": task.id, "verifier": dict(task.verifier)}},
            tags=[f"probe:{run.name}"],
            task=task.task,
            split=task.split,
        ),
    )
