"""Teams of a sandbox world to evolve on: its tasks for teams, their states, and its workers over HTTP.

The skill table is not read: workers are asked, and verifiers say what an answer earned.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import numpy as np

from distill.arrays import Floats
from distill.evolve.episodes import Asked, Orders, Play, Team
from distill.features.extras import Extras
from harness.engine.acts import Policy
from harness.engine.patterns.single import Single
from harness.engine.patterns.trinity import Trinity
from harness.engine.upstream_workers import UpstreamWorkers
from pointsman.config import WorkerConfig
from pointsman.pool import Pool, Worker
from pointsman.sandbox.setup import worker_configs
from pointsman.sandbox.tasks import Split
from pointsman.sandbox.team_tasks import team_tasks
from pointsman.upstream.attempts import Attempts, Limits
from pointsman.upstream.breaker import Breaker
from pointsman.upstream.pooled import PooledTransport

_HEADERS = {"content-type": "application/json"}


def team_exam(world: int, split: Split, size: int) -> list[Asked]:
    """The first tasks for teams of a world's split."""
    return [Asked(task.prompt, task.verifier) for task in team_tasks(world, split, size)]


def pool_of(world: int, base_url: str) -> Pool:
    """The world's workers, whose endpoints are at `base_url`."""
    entries = worker_configs(world, f"{base_url}/v1", "truthful")
    return Pool(tuple(Worker.of(WorkerConfig.model_validate(entry)) for entry in entries))


@asynccontextmanager
async def sandbox_team(world: int, url: str, tasks: Sequence[Asked], *, alone: bool = False) -> AsyncIterator[Team]:
    """A team over the sandbox's server at `url`; `alone` makes each worker answer by itself."""
    transport = PooledTransport()
    breaker = Breaker(5, 5.0, time.monotonic)
    attempts = Attempts(transport, breaker, lambda worker, endpoint: _HEADERS, lambda worker: worker.endpoints[0])
    limits = Limits(connect=5, first_token=30, gap=30, attempts=3, max_retry_after=1, backoff=0.01)
    policy: type[Policy] = Single if alone else Trinity
    try:
        yield Team(pool_of(world, url), UpstreamWorkers(attempts, limits), tasks, policy, seed=world)
    finally:
        await transport.close()


@dataclass(frozen=True, eq=False)
class TaskStates:
    """What a candidate reads of a task: the leading components of its words' features, and a constant."""

    extras: Extras
    mean: Floats
    basis: Floats
    scale: float

    @classmethod
    def fit(cls, prompts: Sequence[str], seed: int, components: int = 12) -> TaskStates:
        extras = Extras.fit(prompts, seed)
        rows = extras.rows(prompts)
        mean = rows.mean(axis=0)
        _, _, right = np.linalg.svd(rows - mean, full_matrices=False)
        basis = np.ascontiguousarray(right[:components].T)
        scale = float(1 / max(np.sqrt(((rows - mean) @ basis).var(axis=0).mean()), 1e-9))
        return cls(extras, mean, basis, scale)

    def rows(self, prompts: Sequence[str]) -> Floats:
        points = (self.extras.rows(prompts) - self.mean) @ self.basis * self.scale
        return np.hstack([points, np.ones((len(prompts), 1))]).astype(np.float64)


def alone_plays(tasks: int, arms: Sequence[str]) -> list[Play]:
    """Every worker on every task by itself: tasks × arms plays, in this order."""
    return [(task, _first(arm, arms)) for task in range(tasks) for arm in arms]


def _first(arm: str, arms: Sequence[str]) -> Orders:
    order = (arm, *(name for name in arms if name != arm))
    return (order, order, order)
