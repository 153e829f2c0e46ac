"""The small parts of a job's stage: rows that several workers claim in batches, each part by one of them.

The job's own worker makes the parts and waits for the last; helpers may join at any time. A part belongs
to whoever claimed it, for the length of a lease that `fan_out` renews; what comes from a worker that lost
it is not taken. Parts of a job that is not running are not given out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Engine, Row, and_, bindparam, func, or_, select, update
from sqlalchemy.dialects.postgresql import JSONB, insert

from pointsman.database.clean import clean_text
from pointsman.jobs.lease import ANEW, LEASE_SECONDS, Claim, guarded
from pointsman.jobs.patience import patiently
from pointsman.jobs.values import storable
from pointsman.tables import JobChunkRow, JobRow
from pointsman.words import ChunkState

TOGETHER = 1_000
ATTEMPTS = 10
"""A part that was begun so often and never ended is failed: it ends the worker that tries it."""

_jobs = JobRow.__table__  # type: ignore[attr-defined]
_chunks = JobChunkRow.__table__  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Chunk:
    """One part as it was claimed."""

    stage: str
    number: int
    params: Any
    attempts: int


class Chunks:
    """The parts of one job as one worker sees them; `owner` names it in their leases."""

    def __init__(self, engine: Engine, job_id: str, owner: str, lease_s: float = LEASE_SECONDS) -> None:
        self._engine = engine
        self._job_id = job_id
        self._owner = owner
        self._lease = timedelta(seconds=lease_s)

    def add(self, held: Claim, stage: str, items: Sequence[Any]) -> None:
        """Makes the parts of a stage, unless they are there. Only the job's own worker may."""
        patiently(lambda: self._add(held, stage, items))

    def recall(self, held: Claim, stage: str) -> None:
        """Takes back what earlier attempts at the job had begun: their worker is no more, or is not to go on."""

        def once() -> None:
            with guarded(self._engine, held) as (connection, _):
                begun = update(_chunks).where(*self._of(stage), _chunks.c.state == "running")
                ours = _chunks.c.lease_owner.like(f"{holder(self._job_id)}%")
                connection.execute(begun.where(ours).values(state="queued", lease_owner=None, lease_until=None))

        patiently(once)

    def claim(self, limit: int, stage: str | None = None) -> list[Chunk]:
        """Up to `limit` parts that nobody works on, the first first; none unless the job runs."""
        return patiently(lambda: self._claim(limit, stage))

    def keep(self, chunks: Collection[Chunk]) -> None:
        """Renews the leases of what is under way."""
        patiently(lambda: self._change(chunks, lease_until=self._until()))

    def finish(self, results: Sequence[tuple[Chunk, Any]]) -> None:
        """Takes in results. Of parts that were lost meanwhile, or whose job no longer runs, nothing is changed."""
        if results:
            rows = [_key(chunk) | {"b_result": storable(value, "a part's result")} for chunk, value in results]
            patiently(lambda: self._finish(rows))

    def fail(self, chunk: Chunk, error: str) -> None:
        """This part cannot be done; the job will fail of it."""
        patiently(lambda: self._change([chunk], state="failed", error=clean_text(error), lease_until=None))

    def release(self, chunks: Collection[Chunk]) -> None:
        """Gives back what was claimed and not begun."""
        back = {"state": "queued", "lease_owner": None, "lease_until": None, "attempts": _chunks.c.attempts - 1}
        patiently(lambda: self._change(chunks, **back))

    def counts(self, stage: str) -> dict[ChunkState, int]:
        """How many parts of a stage are in each state."""
        chosen = select(_chunks.c.state, func.count().label("many")).where(*self._of(stage)).group_by(_chunks.c.state)
        return {row.state: row.many for row in self._all(chosen)}

    def open(self, stage: str | None = None) -> int:
        """How many parts are not ended. Cheap, however many are."""
        chosen = select(func.count()).where(*self._of(stage), _chunks.c.state.in_(("queued", "running")))
        return int(self._all(chosen)[0][0])

    def failure(self, stage: str) -> tuple[int, str] | None:
        """Number and error of the first part that failed."""
        failed = select(_chunks.c.number, _chunks.c.error).where(*self._of(stage), _chunks.c.state == "failed")
        rows = self._all(failed.order_by(_chunks.c.number).limit(1))
        return (rows[0].number, rows[0].error or "") if rows else None

    def results(self, stage: str) -> Iterator[Any]:
        """The results of the parts that are done, in the order of the items; read in pages."""
        after = -1
        done = select(_chunks.c.number, _chunks.c.result).where(*self._of(stage), _chunks.c.state == "done")
        while rows := self._all(done.where(_chunks.c.number > after).order_by(_chunks.c.number).limit(TOGETHER)):
            yield from (row.result for row in rows)
            after = rows[-1].number

    def _add(self, held: Claim, stage: str, items: Sequence[Any]) -> None:
        with guarded(self._engine, held) as (connection, _):
            for first in range(0, len(items), TOGETHER):
                rows = [
                    {
                        "job_id": self._job_id,
                        "stage": stage,
                        "number": number,
                        "params": storable(item),
                        "state": "queued",
                    }
                    for number, item in enumerate(items[first : first + TOGETHER], first)
                ]
                made = insert(_chunks).on_conflict_do_nothing(index_elements=["job_id", "stage", "number"])
                connection.execute(made, rows)

    def _claim(self, limit: int, stage: str | None) -> list[Chunk]:
        now = func.clock_timestamp()
        lapsed = and_(_chunks.c.state == "running", _chunks.c.lease_until < now)
        free = select(_chunks.c.stage, _chunks.c.number)
        free = free.where(*self._of(stage), self._running(), or_(_chunks.c.state == "queued", lapsed))
        free = free.order_by(_chunks.c.stage, _chunks.c.number).limit(limit).with_for_update(skip_locked=True)
        once = free.cte("free")  # a plain subquery may be run again for each row, and lock more than it returns
        taken = update(_chunks).where(
            *self._of(None), _chunks.c.stage == once.c.stage, _chunks.c.number == once.c.number
        )
        taken = taken.values(
            state="running", attempts=_chunks.c.attempts + 1, lease_owner=self._owner, lease_until=self._until()
        )
        with self._engine.begin() as connection:
            rows = connection.execute(taken.returning(_chunks)).all()
        chunks = sorted((_chunk(row) for row in rows), key=lambda chunk: (chunk.stage, chunk.number))
        for worn in [chunk for chunk in chunks if chunk.attempts > ATTEMPTS]:
            self.fail(worn, f"was begun {ATTEMPTS} times and never ended: it takes its worker with it")
        return [chunk for chunk in chunks if chunk.attempts <= ATTEMPTS]

    def _finish(self, rows: list[dict[str, Any]]) -> None:
        done = update(_chunks).where(*self._this(), self._running())
        result: Any = bindparam("b_result", type_=JSONB(none_as_null=True))
        with self._engine.begin() as connection:
            connection.execute(done.values(state="done", result=result, error=None, lease_until=None), rows)
            # Something was achieved since the last crash, so crashes are counted anew.
            progress = update(_jobs).where(_jobs.c.id == self._job_id, or_(_jobs.c.crashes > 0, _jobs.c.losses > 0))
            connection.execute(progress.values(ANEW))

    def _change(self, chunks: Collection[Chunk], **values: Any) -> None:
        if chunks:
            with self._engine.begin() as connection:
                connection.execute(update(_chunks).where(*self._this()).values(values), [_key(one) for one in chunks])

    def _all(self, chosen: Any) -> Sequence[Row[Any]]:
        def once() -> Sequence[Row[Any]]:
            with self._engine.connect() as connection:
                return connection.execute(chosen).all()

        return patiently(once)

    def _of(self, stage: str | None) -> tuple[ColumnElement[bool], ...]:
        ours = _chunks.c.job_id == self._job_id
        return (ours,) if stage is None else (ours, _chunks.c.stage == stage)

    def _mine(self) -> tuple[ColumnElement[bool], ...]:
        return (*self._of(None), _chunks.c.state == "running", _chunks.c.lease_owner == self._owner)

    def _this(self) -> tuple[ColumnElement[bool], ...]:
        """One claimed part, by the parameters of `_key`: attempts make a claim that was lost and won again another."""
        place = (_chunks.c.stage == bindparam("b_stage"), _chunks.c.number == bindparam("b_number"))
        return (*self._mine(), *place, _chunks.c.attempts == bindparam("b_attempts"))

    def _running(self) -> ColumnElement[bool]:
        return select(_jobs.c.id).where(_jobs.c.id == self._job_id, _jobs.c.state == "running").exists()

    def _until(self) -> Any:
        return func.clock_timestamp() + self._lease


def holder(job_id: str, fence: int | None = None) -> str:
    """How the job's own worker is called in the leases of its parts; without a fence, what all such begin with."""
    return f"job:{job_id}:" if fence is None else f"job:{job_id}:{fence}"


def _key(chunk: Chunk) -> dict[str, Any]:
    return {"b_stage": chunk.stage, "b_number": chunk.number, "b_attempts": chunk.attempts}


def _chunk(row: Row[Any]) -> Chunk:
    return Chunk(row.stage, row.number, row.params, row.attempts)
