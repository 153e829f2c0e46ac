"""How the engine has a worker chosen, and an orchestrator's text written.

`ChainDeciders` serves: the chain of routers scores, exploration draws. A rollout supplies its own policy object
with the same two methods; what it knows of its draws goes into the `Choice`, and so on record.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.engine.acts import Roles
from harness.engine.request import Message
from harness.engine.role_prompt import ask_as, role_scores
from harness.routing.base import NO_USAGE, Ask, RouterUsage
from harness.routing.chain import Chain, Decided
from harness.routing.completion import content_of, usage_of
from harness.routing.eligibility import Eligibility
from harness.routing.exploration import Draw, draw, forced
from harness.routing.prompted import Lm
from pointsman.errors import UpstreamError
from pointsman.pool import Price, Worker
from pointsman.words import DecisionKind


@dataclass(frozen=True)
class RoleChoice:
    """The role taken. `draw` is of the role alone; `drawn` what it gave, where another had to stand in for it."""

    role: str
    draw: Draw
    drawn: str
    scores: Mapping[str, float] | None = None
    usage: RouterUsage = NO_USAGE

    def row(self) -> dict[str, Any]:
        """The column `roles`."""
        return {
            "drawn": self.drawn,
            "scores": dict(self.scores) if self.scores is not None else None,
            "probabilities": self.draw.probabilities,
            "draw": list(self.draw.draw) or None,
            "explored": self.draw.explored,
            "forced": self.draw.forced,
        }


@dataclass(frozen=True)
class Choice:
    """A worker, the draw that chose it, and what is known of how it was scored.

    `fields` are columns of the decision that a policy of its own adds (a router's version, its raw reply).
    """

    draw: Draw
    scores: Mapping[str, float] = field(default_factory=dict)
    decided: Decided | None = None
    role: RoleChoice | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Written:
    """What an orchestrator wrote; `fault` where it wrote nothing."""

    text: str | None
    usage: RouterUsage = NO_USAGE
    model: str | None = None
    milliseconds: float = 0.0
    fault: str | None = None


class Deciders(Protocol):
    """Chooses. `eligible.workers` is never empty; `seed` is the node's own and makes the draw repeatable."""

    async def decide(
        self, kind: DecisionKind, ask: Ask, eligible: Eligibility, seed: int, roles: Roles | None = None
    ) -> Choice: ...

    async def write(self, messages: list[Message], max_tokens: int, seed: int) -> Written: ...


@dataclass(frozen=True)
class Orchestrator:
    """The LLM that writes plans and, where `roles` is set, names roles: reached by the router's own function.

    `deadline` is in seconds for one text.
    """

    lm: Lm
    model: str
    price: Price | None = None
    deadline: float = 30.0
    roles: bool = False


class ChainDeciders:
    """Scores from the chain, draws by exploration. Without an orchestrator roles go by the pattern's rule."""

    def __init__(self, chain: Chain, *, epsilon: float, orchestrator: Orchestrator | None = None) -> None:
        self._chain = chain
        self._epsilon = epsilon
        self._orchestrator = orchestrator

    async def decide(
        self, kind: DecisionKind, ask: Ask, eligible: Eligibility, seed: int, roles: Roles | None = None
    ) -> Choice:
        rng = random.Random(seed)
        role = await self._role(ask, roles, rng) if roles is not None else None
        workers = eligible.workers
        if role is not None and roles is not None:
            workers = for_role(workers, roles, role.role)
            ask = ask_as(ask, role.role, roles.about.get(role.role, ""))
        if len(workers) == 1:
            return Choice(forced(workers[0].name, "only_one"), role=role)
        decided = await self._chain.decide(ask, workers, rng.getrandbits(32))
        scores = decided.scored.scores
        return Choice(draw(scores, self._epsilon, rng), scores, decided, role)

    async def write(self, messages: list[Message], max_tokens: int, seed: int) -> Written:
        asked = self._orchestrator
        if asked is None:
            return Written(None, fault="no_orchestrator")
        return await written_by(asked, messages, max_tokens)

    async def _role(self, ask: Ask, roles: Roles, rng: random.Random) -> RoleChoice:
        names = roles.names
        if roles.forced is not None:
            return _standing_in(roles, forced(roles.forced, "suggested"), None, NO_USAGE)
        if self._orchestrator is None or not self._orchestrator.roles or len(names) == 1:
            return _standing_in(roles, forced(names[0], "rule"), None, NO_USAGE)
        asked = self._orchestrator
        scores, usage = await role_scores(
            asked.lm, asked.model, asked.price, ask, roles.about, names, rng.getrandbits(32), asked.deadline
        )
        if scores is None:
            return _standing_in(roles, forced(names[0], "rule"), None, usage)
        return _standing_in(roles, draw(scores, self._epsilon, rng), scores, usage)


async def written_by(asked: Orchestrator, messages: list[Message], max_tokens: int) -> Written:
    """What an orchestrator LLM says to `messages`; never raises for what it or its server does wrong."""
    body = {"model": asked.model, "messages": messages, "temperature": 0, "max_tokens": max_tokens}
    began = time.perf_counter()
    try:
        async with asyncio.timeout(asked.deadline):
            reply = await asked.lm(body)
    except UpstreamError as error:
        return Written(None, model=asked.model, milliseconds=_since(began), fault=error.fault)
    except TimeoutError:
        return Written(None, model=asked.model, milliseconds=_since(began), fault="timeout")
    return Written(content_of(reply), usage_of(reply, asked.price), asked.model, _since(began))


def for_role(workers: tuple[Worker, ...], roles: Roles, role: str) -> tuple[Worker, ...]:
    """The workers that may take `role`; where none of them is eligible, all that are."""
    only = roles.only.get(role)
    return tuple(worker for worker in workers if only is None or worker.name in only) or workers


def _standing_in(roles: Roles, drawn: Draw, scores: Mapping[str, float] | None, usage: RouterUsage) -> RoleChoice:
    role = roles.instead.get(drawn.chosen, drawn.chosen)
    return RoleChoice(role, drawn, drawn.chosen, scores, usage)


def _since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 3)
