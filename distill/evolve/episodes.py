"""Fitness by whole episodes of the engine: a team answers tasks in turns, and a task's verifier says what it earned.

A candidate is one matrix W [roles, d, arms]: for a task with state x [d] the workers of a role are ranked by x W. Roles
follow the pattern's rule. The engine (`harness.engine`) runs every episode; how a worker answers is given from outside:
over HTTP, or as a function. An episode depends on the candidate only through its rankings, so one that was played is
not played again: that is what makes all candidates of a generation comparable (common random numbers) and cheap.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from distill.arrays import Floats, Integers
from distill.evolve.replay import Fitness
from harness.engine.acts import Policy, Roles
from harness.engine.deciders import Choice, RoleChoice, Written
from harness.engine.engine import Engine, final
from harness.engine.events import Done
from harness.engine.log import MemoryLog
from harness.engine.patterns.trinity import Trinity
from harness.engine.request import Message, Request
from harness.engine.workers import Workers
from harness.routing.base import Ask
from harness.routing.eligibility import Eligibility
from harness.routing.exploration import draw, forced
from pointsman.ids import new_id
from pointsman.pool import Pool
from pointsman.verifiers import verify
from pointsman.words import DecisionKind

ROLES = ("thinker", "solver", "verifier")
DEPTH = (1, 2, 1)
"""How many of a role's ranking an episode of five turns can come to: a rejected solver is followed by another. The rest
stand in the order of their names, so that rankings that differ in nothing else are one play."""
Orders = tuple[tuple[str, ...], ...]
"""For each of `ROLES` the workers, best first."""
Play = tuple[int, Orders]
"""A task's number, and who is asked."""
Players = Callable[[Sequence[Play]], Sequence[float]]
"""Plays episodes and gives what each earned."""


@dataclass(frozen=True)
class Asked:
    """A task of an episode, and the verifier of its answer."""

    prompt: str
    verifier: Mapping[str, Any]


class Ranked:
    """Deciders for a rollout: the pattern's rule chooses roles, rankings choose workers."""

    def __init__(self, orders: Orders) -> None:
        self._orders = dict(zip(ROLES, orders, strict=True))

    async def decide(
        self, kind: DecisionKind, ask: Ask, eligible: Eligibility, seed: int, roles: Roles | None = None
    ) -> Choice:
        role = None if roles is None else _role(roles)
        order = self._orders.get(role.role if role is not None else "solver", self._orders["solver"])
        offered = {worker.name for worker in eligible.workers}
        scores = {name: -float(place) for place, name in enumerate(order) if name in offered}
        if not scores:  # nobody that the candidate ranks may be asked
            scores = dict.fromkeys(sorted(offered), 0.0)
        return Choice(draw(scores, 0.0, random.Random(seed)), scores, role=role)

    async def write(self, messages: list[Message], max_tokens: int, seed: int) -> Written:
        return Written(None, fault="no_orchestrator")


def _role(roles: Roles) -> RoleChoice:
    named = roles.forced or roles.names[0]
    drawn = forced(named, "suggested" if roles.forced else "rule")
    return RoleChoice(roles.instead.get(named, named), drawn, named)


@dataclass(eq=False)
class Team:
    """Plays episodes on `tasks` with the engine. `policy` is made anew for each; at most `at_once` run together."""

    pool: Pool
    workers: Workers
    tasks: Sequence[Asked]
    policy: Callable[[], Policy] = Trinity
    seed: int = 0
    at_once: int = 16

    async def play(self, plays: Sequence[Play]) -> list[float]:
        room = asyncio.Semaphore(self.at_once)

        async def one(play: Play) -> float:
            async with room:
                return await self._episode(*play)

        return list(await asyncio.gather(*map(one, plays)))

    async def _episode(self, number: int, orders: Orders) -> float:
        task = self.tasks[number]
        messages = [{"role": "user", "content": task.prompt}]
        request = Request(
            new_id(), new_id(), new_id(), new_id(), messages, Ask(task.prompt), {}, "rollout", self.seed + number
        )
        engine = Engine(self.pool, self.workers, Ranked(orders), MemoryLog())
        done = await final(engine.run(self.policy(), request))
        answer = done.answer if isinstance(done, Done) else None
        return float(verify(task.verifier, answer)) if answer else 0.0


def in_this_process(play: Callable[[Sequence[Play]], Awaitable[list[float]]]) -> Players:
    """Players that wait for `play` in an event loop of their own."""
    return lambda plays: asyncio.run(_awaited(play, plays))


async def _awaited(play: Callable[[Sequence[Play]], Awaitable[list[float]]], plays: Sequence[Play]) -> list[float]:
    return await play(plays)


@dataclass(eq=False)
class EpisodeProblem:
    """`states` [n, d] of the tasks, `arms` the workers' names. `sample` tasks are drawn each generation (0: all).

    `played` counts the episodes that were really run.
    """

    states: Floats
    arms: Sequence[str]
    players: Players
    sample: int = 0
    seed: int = 0
    known: dict[Play, float] = field(default_factory=dict)
    played: int = 0

    @property
    def size(self) -> int:
        """How many numbers a candidate has."""
        return len(ROLES) * int(self.states.shape[1]) * len(self.arms)

    def fitness(self, candidates: Floats, generation: int) -> Fitness:
        rows = self._rows(generation)
        plays = [self.plays(candidate, rows) for candidate in candidates]
        self.play([play for some in plays for play in some])
        pure = np.array([np.mean([self.known[play] for play in some]) for some in plays])
        return Fitness(pure, pure)

    def rewards(self, candidate: Floats) -> Floats:
        plays = self.plays(candidate, np.arange(len(self.states)))
        self.play(plays)
        return np.array([self.known[play] for play in plays])

    def plays(self, candidate: Floats, rows: Integers) -> list[Play]:
        """What the candidate plays on these tasks."""
        weights = candidate.reshape(len(ROLES), self.states.shape[1], len(self.arms))
        ranked = np.argsort(-np.einsum("nd,rda->nra", self.states[rows], weights), axis=2, kind="stable")
        return [
            (int(row), tuple(self._order(role, depth) for role, depth in zip(roles, DEPTH, strict=True)))
            for row, roles in zip(rows.tolist(), ranked.tolist(), strict=True)
        ]

    def _order(self, places: Sequence[int], depth: int) -> tuple[str, ...]:
        first = [self.arms[place] for place in places[:depth]]
        return (*first, *sorted(set(self.arms) - set(first)))

    def play(self, plays: Sequence[Play]) -> None:
        """Plays what was not played before."""
        fresh = list(dict.fromkeys(play for play in plays if play not in self.known))
        if fresh:
            self.known |= dict(zip(fresh, self.players(fresh), strict=True))
            self.played += len(fresh)

    def _rows(self, generation: int) -> Integers:
        if not 0 < self.sample < len(self.states):
            return np.arange(len(self.states))
        rng = np.random.default_rng([self.seed, generation])
        drawn: Integers = rng.choice(len(self.states), self.sample, replace=False)
        return drawn
