"""What the code of a job is given.

    def run(context: JobContext, params: Count) -> dict[str, Any]:
        with context.stage("count") as stage:
            if stage.todo:                                   # not done by an earlier attempt
                for n in range(context.checkpoint.get("n", 0), params.to):
                    context.check()                          # ends here if cancelled, or no longer ours
                    context.progress(n, params.to)
                    context.checkpoint.set("n", n + 1)
        context.publish("counted", lambda connection: connection.execute(...).rowcount)   # once, whatever happens
        return {"n": params.to}

A runner may be killed at any line and begun again elsewhere: what it must not do twice stands in `publish`,
what it need not do twice behind a stage, a checkpoint or a part (`fan_out`). It lets JobStopped pass.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from sqlalchemy import Connection, Engine, func, update
from sqlalchemy.dialects.postgresql import JSONB

from pointsman.config import Config, Settings, load_config
from pointsman.errors import BrokenInvariant, JobCancelled, JobSkipped, UserError
from pointsman.jobs import rates
from pointsman.jobs.artifacts import Artifacts
from pointsman.jobs.checkpoint import Checkpoint
from pointsman.jobs.chunks import Chunks, holder
from pointsman.jobs.fanout import Work, fan_out
from pointsman.jobs.kinds import kind_of
from pointsman.jobs.lease import ANEW, Claim, guarded
from pointsman.jobs.log import JobLog
from pointsman.jobs.money import Bill, Money
from pointsman.jobs.patience import patiently
from pointsman.jobs.values import storable
from pointsman.jobs.workplace import Workplace
from pointsman.tables import JobRow
from pointsman.words import JobLogLevel

T = TypeVar("T")
Effect = Callable[[Connection], Any]

_jobs = JobRow.__table__  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Stage:
    """One part of a job. `todo` is whether it is still to be done."""

    name: str
    todo: bool


class JobContext:
    """One attempt at a job, for its runner. All of it may be used from several threads."""

    def __init__(
        self, place: Workplace, engine: Engine, held: Claim, *, cancel: threading.Event | None = None, helper: str = ""
    ) -> None:
        self.place = place
        self.engine = engine
        self.held = held
        self.chunks = Chunks(engine, held.job_id, helper or holder(held.job_id, held.fence), place.lease_s)
        self.checkpoint = Checkpoint(engine, held)
        self.part: Work | None = None
        self._money = Money(engine, held.job_id)
        self._cancel = cancel or threading.Event()
        self._log = JobLog(engine, held, fenced=not helper)
        self._stages = kind_of(held.kind).stages
        self._done = set(held.stages_done)

    @classmethod
    @contextmanager
    def open(
        cls, place: Workplace, engine: Engine, held: Claim, *, cancel: threading.Event | None = None, helper: str = ""
    ) -> Iterator[JobContext]:
        """A context whose words are written when the block ends and, but for small jobs, twice a second."""
        context = cls(place, engine, held, cancel=cancel, helper=helper)
        if not held.small:
            context._log.start()
        try:
            yield context
        finally:
            context._log.close()

    @property
    def job_id(self) -> str:
        return self.held.job_id

    @property
    def project_id(self) -> str:
        return self.held.project_id

    @property
    def attempt(self) -> int:
        """1 for the first."""
        return self.held.attempt

    @property
    def lease_s(self) -> float:
        return self.place.lease_s

    @property
    def settings(self) -> Settings:
        return self.place.settings

    @property
    def config(self) -> Config:
        """`pointsman.toml`; UserError where there is none. A worker may be older than the file, a child is not."""
        if self.held.small and self.settings.config_file.exists():
            return load_config(self.settings.config_file)
        if self.place.config is None:
            raise UserError(f"{self.settings.config_file}: no such file, and this job needs it; see `pointsman init`")
        return self.place.config

    @cached_property
    def scratch(self) -> Path:
        """A local folder for this attempt alone; it goes when the attempt ends."""
        folder = self.place.folder(self.held) / "scratch"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @cached_property
    def artifacts(self) -> Artifacts:
        """The job's files."""
        return Artifacts(self.engine, self.place.files(), self.held)

    def check(self) -> None:
        """Raises JobCancelled once somebody cancelled the job. Costs nothing: call it in every loop."""
        if self._cancel.is_set():
            raise JobCancelled(f"job {self.job_id} was cancelled")

    def cancelled(self) -> bool:
        return self._cancel.is_set()

    def pause(self, seconds: float) -> None:
        """Sleeps, unless the job is cancelled meanwhile."""
        self._cancel.wait(seconds)
        self.check()

    def skip(self, reason: str) -> NoReturn:
        """Ends the job as `skipped`: there is nothing to do, and that is no fault."""
        raise JobSkipped(reason)

    @contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        """One of the kind's stages, in their order. It is done for good when the block ends without an error."""
        if name not in self._stages:
            raise BrokenInvariant(f"{self.held.kind} jobs have no stage {name!r}, only {', '.join(self._stages)}")
        if name in self._done:
            self.log(f"stage {name}: done by an earlier attempt")
            yield Stage(name, False)
            return
        self.check()
        if not self.held.small:
            self._log.stage(name)
            self.log(f"stage {name}: begins")
        yield Stage(name, True)
        self._done.add(name)
        if not self.held.small:
            self._log.flush()
            patiently(lambda: self._keep_stage(name), check=self.check)

    def progress(self, done: int, total: int | None = None) -> None:
        """How far the stage is; written twice a second at most. Rate and time left follow from it."""
        self._log.progress(done, total)

    def log(self, message: str, level: JobLogLevel = "info") -> None:
        """A line for people who watch the job."""
        self._log.line(message, level)

    def metric(self, name: str, step: int, value: float) -> None:
        """A point of a curve. A step that is taken again by a later attempt replaces the earlier one's."""
        self._log.metric(name, step, value)

    def spend(self, amount: Decimal) -> Decimal:
        """Adds to the job's cost, which is returned. BudgetSpent once it is above the budget."""
        return self._money.spend(amount)

    @contextmanager
    def reserve(self, estimate: Decimal) -> Iterator[Bill]:
        """Sets aside what a call may cost before it is made, for `Bill.settle`. BudgetSpent where it is not left."""
        with self._money.reserve(estimate) as bill:
            yield bill

    def take(self, name: str, per_minute: float, n: float = 1.0) -> None:
        """Waits until `n` of a rate that all workers share may be taken: a provider's requests a minute."""
        rates.wait_for(self.engine, name, per_minute, n, check=self.check, sleep=self.pause)

    def fan_out(
        self, stage: str, items: Sequence[Any], work: Work | None = None, *, concurrency: int = 4
    ) -> Iterator[Any]:
        """Does `work`, by default the kind's own part, on each item: in threads here, and wherever a worker is free."""
        return fan_out(self, stage, items, work, concurrency=concurrency)

    def publish(self, name: str, effect: Effect) -> Any:
        """Runs `effect` in a transaction in which the job is certainly ours, once in the job's whole life.

        Its value (JSON) is kept, and returned again to an attempt that comes back here. Raises LeaseLost or
        JobCancelled, and then nothing has happened. The effect must be short and use its connection alone.
        """

        def once() -> Any:
            with guarded(self.engine, self.held) as (connection, row):
                if name in row.effects:
                    return row.effects[name]
                kept = storable({name: effect(connection)}, f"the value of effect {name}")
                merged = _jobs.c.effects.op("||")(func.cast(kept, JSONB))
                connection.execute(update(_jobs).where(_jobs.c.id == self.job_id).values(effects=merged))
                return kept[name]

        self._log.quiet(True)
        try:
            return patiently(once, check=self.check)
        finally:
            self._log.quiet(False)

    def _keep_stage(self, name: str) -> None:
        with guarded(self.engine, self.held) as (connection, row):
            if name not in row.stages_done:
                done = func.array_append(_jobs.c.stages_done, name)
                connection.execute(update(_jobs).where(_jobs.c.id == self.job_id).values(stages_done=done, **ANEW))
