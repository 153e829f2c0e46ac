"""What a candidate would do on rows, and what that is worth: the serving router run over them, offline.

The policy of a row is what serving would draw from without exploration: the workers with the best score
share it equally, and where the router fails the default worker has it. Worth is the policy's mean utility.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from harness.optimise.candidate import Candidate
from harness.optimise.rows import Floats, Objective, Row, Rows
from harness.routing.base import RouterFailed
from harness.routing.prompted import PromptedRouter
from pointsman.errors import UpstreamError
from pointsman.pool import Worker

CONCURRENCY = 8
_OF_THE_PROMPT = ("bad_request", "context_exceeded")
Build = Callable[[Candidate], PromptedRouter]


@dataclass(frozen=True, eq=False)
class Routed:
    """One candidate on some rows: `policy` (rows, workers) sums to 1 by row; `failed` are failures by reason."""

    policy: Floats
    failed: tuple[str | None, ...]

    def utilities(self, rows: Rows, objective: Objective) -> Floats:
        """Expected utility by row."""
        values: Floats = (self.policy * rows.utilities(objective)).sum(axis=1)
        return values


class Evaluator:
    """Runs candidates over rows. `workers` are those of the rows, in their order.

    `build` makes the router that would serve a candidate; its calls are what a search spends.
    """

    def __init__(
        self,
        workers: Sequence[Worker],
        build: Build,
        default: str,
        runner: asyncio.Runner,
        concurrency: int = CONCURRENCY,
    ) -> None:
        self._workers = tuple(workers)
        self._names = [worker.name for worker in workers]
        self._default = self._names.index(default)
        self._build = build
        self._runner = runner
        self._concurrency = concurrency
        self._done: dict[tuple[str, str], tuple[Floats, str | None]] = {}

    def routed(self, candidate: Candidate, rows: Rows) -> Routed:
        """The policy on `rows`; raises `BudgetSpent` where the calls for it cannot be made."""
        missing = [row for row in rows.rows if (candidate.id, row.id) not in self._done]
        if missing:
            self._runner.run(self._route(candidate, missing))
        found = [self._done[candidate.id, row.id] for row in rows.rows]
        policy = np.array([one for one, _ in found]).reshape(len(found), len(self._names))
        return Routed(policy, tuple(reason for _, reason in found))

    @property
    def failures(self) -> float:
        """The share of replies that could not be used, over everything routed."""
        reasons = [reason for _, reason in self._done.values()]
        return sum(reason is not None for reason in reasons) / len(reasons) if reasons else 0.0

    def known(self, candidate: Candidate, rows: Rows) -> set[int]:
        """The positions in `rows` that the candidate was tried on already."""
        return {index for index, row in enumerate(rows.rows) if (candidate.id, row.id) in self._done}

    async def _route(self, candidate: Candidate, rows: Sequence[Row]) -> None:
        router = self._build(candidate)
        places = asyncio.Semaphore(self._concurrency)

        async def one(row: Row) -> None:
            async with places:
                self._done[candidate.id, row.id] = await self._policy(router, row)

        try:
            async with asyncio.TaskGroup() as group:
                for row in rows:
                    group.create_task(one(row))
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from None

    async def _policy(self, router: PromptedRouter, row: Row) -> tuple[Floats, str | None]:
        policy = np.zeros(len(self._names))
        try:
            # One order of options per row: what is compared differs in its texts alone.
            scored = await router.score(row.ask, self._workers, crc32(row.id.encode()))
        except RouterFailed as error:
            policy[self._default] = 1.0
            return policy, error.reason
        except UpstreamError as error:
            # A router LLM that cannot be reached says nothing about a candidate: the search ends and can go on later.
            if error.fault not in _OF_THE_PROMPT:
                raise
            policy[self._default] = 1.0
            return policy, error.fault
        scores = np.array([scored.scores[name] for name in self._names])
        best = scores == scores.max()
        return best / best.sum(), None
