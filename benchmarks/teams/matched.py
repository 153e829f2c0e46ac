"""A single worker with as much as a team: it answers again and again until it has used as many tokens, or USD.

What it says most often counts. It gets one attempt more rather than one less, so it never has less than the team. The
worker is the best one for the family by the sandbox's skill table, which no router sees: the strongest baseline that
there is. A second baseline is the worker that the router chose, its routing paid for.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Literal

from teams.world import Ran, Scene

from harness.engine.patterns.ballots import counted_as
from pointsman.sandbox.tasks import Task
from pointsman.sandbox.truth import truth
from pointsman.verifiers import verify

Budget = Literal["tokens", "cost"]
MOST = 200
"""Attempts at most. No team here takes as much; where one did, its `token_ratio` would say so."""


@dataclass(frozen=True)
class Matched:
    """`attempts` made; what they took in all."""

    reward: float
    tokens: int
    cost: float
    attempts: int


class Attempts:
    """A world's attempts, each made once."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._made: dict[tuple[str, str], list[Ran]] = defaultdict(list)
        self._busy: dict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def matched(self, worker: str, task: Task, team: Ran, budget: Budget, routed: Ran | None = None) -> Matched:
        """As many attempts as it takes to have at least the team's `budget`; `routed` pays for its routing first."""
        first = await self._attempt(worker, task, 0)
        tokens = routed.tokens - first.tokens if routed is not None else 0
        cost = routed.cost - first.cost if routed is not None else 0.0
        taken: list[Ran] = []
        while len(taken) < MOST and (not taken or (tokens < team.tokens if budget == "tokens" else cost < team.cost)):
            one = await self._attempt(worker, task, len(taken))
            taken.append(one)
            tokens, cost = tokens + one.tokens, cost + one.cost
        return Matched(float(verify(task.verifier, majority(taken))), tokens, cost, len(taken))

    async def _attempt(self, worker: str, task: Task, number: int) -> Ran:
        key = (worker, task.id)
        async with self._busy[key]:
            made = self._made[key]
            while len(made) <= number:
                made.append(await self._scene.attempt(worker, task, len(made)))
            return made[number]


def majority(taken: list[Ran]) -> str:
    """What was said most often; of equals what was said first."""
    counts = Counter(counted_as(one.answer) for one in taken)
    most = counts.most_common(1)[0][0]
    return next(one.answer for one in taken if counted_as(one.answer) == most)


def best_worker(seed: int, tasks: list[Task]) -> str:
    """The worker that does best on these tasks, by the skill table."""
    table = truth(seed)
    return max(table.success, key=lambda name: sum(table.probability(name, task.skills) for task in tasks))
