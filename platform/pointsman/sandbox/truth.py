"""The skill table: with what probability each worker answers a task of each skill rightly.

Private. Only the sandbox's server, which plays the workers, the cards' author, which describes them, the
benchmarks and the sandbox's tests may import it; a test greps for others. A router, a job or a page that
could read it would make every figure of the sandbox worthless.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from random import Random

from pointsman.errors import UserError
from pointsman.sandbox.families import FAMILIES
from pointsman.sandbox.roster import mix, workers, world_rng
from pointsman.sandbox.tasks import Task

BEST_MARGIN = 0.02
"""A worker within this of the best success probability counts as the best, too."""

SECOND_EXPERTS = 0.3
"""The share of skills that two workers are equally good at."""

_EXPERT = (0.86, 0.96)
_SECOND_GAP = (0.002, 0.015)
_LEVEL = (0.36, 0.56)
_SPREAD = 0.12


@dataclass(frozen=True)
class Truth:
    """Success probabilities of one world, by worker and skill."""

    success: Mapping[str, Mapping[str, float]]
    experts: Mapping[str, tuple[str, ...]]

    def probability(self, worker: str, skills: Iterable[str]) -> float:
        """That `worker` answers a task that needs all of `skills` rightly."""
        return prod(self.success[worker][skill] for skill in skills)

    def best(self, skills: tuple[str, ...]) -> frozenset[str]:
        """The workers within `BEST_MARGIN` of the best for these skills."""
        by_worker = {worker: self.probability(worker, skills) for worker in self.success}
        top = max(by_worker.values())
        return frozenset(worker for worker, value in by_worker.items() if value >= top - BEST_MARGIN)


@lru_cache(maxsize=64)
def truth(seed: int) -> Truth:
    """The table of a world."""
    rng = world_rng(seed, "truth")
    names = [worker.name for worker in workers(seed)]
    skills = sorted({skill for family in FAMILIES for skill in family.skills})
    experts = _deal(rng, names, skills, mix(seed))
    levels = {name: rng.uniform(*_LEVEL) for name in names}
    success = {name: {skill: _base(rng, levels[name]) for skill in skills} for name in names}
    for skill, (first, *rest) in experts.items():
        top = rng.uniform(*_EXPERT)
        success[first][skill] = round(top, 4)
        for second in rest:
            success[second][skill] = round(top - rng.uniform(*_SECOND_GAP), 4)
    return Truth(success, experts)


def routing_accuracy(seed: int, picks: Iterable[tuple[Task, str]]) -> float:
    """The share of (task, worker) picks whose worker is one of the best for the task."""
    table = truth(seed)
    hits = [worker in table.best(task.skills) for task, worker in picks]
    if not hits:
        raise UserError("routing accuracy: expected at least one pick, got none")
    return sum(hits) / len(hits)


def mean_success(seed: int, picks: Iterable[tuple[Task, str]]) -> float:
    """The mean success probability of (task, worker) picks."""
    table = truth(seed)
    values = [table.probability(worker, task.skills) for task, worker in picks]
    if not values:
        raise UserError("mean success: expected at least one pick, got none")
    return sum(values) / len(values)


def _base(rng: Random, level: float) -> float:
    return round(level + rng.uniform(-_SPREAD, _SPREAD), 4)


def _deal(rng: Random, names: list[str], skills: list[str], shares: Mapping[str, float]) -> dict[str, tuple[str, ...]]:
    """An expert for every skill, two for some, each dealt to whoever has the least so far.

    Dealing by the share of traffic keeps every worker well below the oracle.
    """
    held = dict.fromkeys(names, 0.0)
    experts: dict[str, tuple[str, ...]] = {}
    for skill in rng.sample(skills, len(skills)):
        count = 2 if rng.random() < SECOND_EXPERTS else 1
        chosen = sorted(names, key=lambda name: (held[name], rng.random()))[:count]
        for name in chosen:
            held[name] += shares.get(skill, 0.0)
        experts[skill] = tuple(chosen)
    return experts
