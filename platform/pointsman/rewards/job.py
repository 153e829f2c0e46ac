"""The runner of `rewards`, and what starts it: soon after something came in, closed, or got a word."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Engine

from pointsman.config import Config
from pointsman.identity import DEFAULT_PROJECT_ID
from pointsman.jobs.context import JobContext
from pointsman.jobs.rewarding import Rewards
from pointsman.jobs.store import Jobs
from pointsman.rewards.refresh import Need, Refreshed, judge_of, kept, refresh, sweep_due, waiting
from pointsman.rewards.spec import RewardSpec, specs_of

LOOK = timedelta(minutes=1)
LATE = timedelta(seconds=30)
SMALL = 1_000
"""Decisions that are computed inside the worker, in a fraction of a second; more take a process of their own."""
_KEY = "rewards"


def run(context: JobContext, params: Rewards) -> dict[str, Any]:
    """Every spec of the configuration, over all projects."""
    config, now = context.place.config, datetime.now(UTC)
    with context.stage("compute"):
        done = {spec.name: _compute(context, config, spec, now, params.sweep) for spec in specs_of(config)}
    return {name: vars(one) for name, one in done.items()}


class RewardPulse:
    """One dispatcher's; several start one job between them. Costs a few queries a minute."""

    def __init__(self, engine: Engine, config: Config | None) -> None:
        self._engine = engine
        self._specs, self._judge, self._kept = specs_of(config), judge_of(config), kept(config)
        self._looked: datetime | None = None

    def beat(self, now: datetime) -> str | None:
        """The job that this beat started, if any."""
        if self._looked is not None and now - self._looked < LOOK:
            return None
        self._looked = now
        sweep, found = self._due(now)
        if not sweep and not found:
            return None
        params = {"sweep": sweep, "small": not sweep and found <= SMALL}
        started = Jobs(self._engine).start(
            "rewards", params, project_id=DEFAULT_PROJECT_ID, asked_by=_KEY, dedupe_key=_KEY
        )
        return started.id

    def _due(self, now: datetime) -> tuple[bool, int]:
        """Whether the log is to be swept, and how many decisions wait otherwise."""
        with self._engine.connect() as connection:
            if any(sweep_due(connection, spec, now) for spec in self._specs):
                return True, 0
            needs = [
                Need.of(connection, spec, now, self._kept, self._judge, overlap=LATE) for spec in self._specs
            ]  # fmt: skip
            return False, sum(waiting(connection, need, SMALL + 1) for need in needs)


def _compute(context: JobContext, config: Config | None, spec: RewardSpec, now: datetime, sweep: bool) -> Refreshed:
    def progress(done: int) -> None:
        context.check()
        context.progress(done)

    return refresh(context.engine, spec, now, kept=kept(config), judge=judge_of(config), sweep=sweep, progress=progress)
