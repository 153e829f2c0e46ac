"""Plans carried out by the serving engine: a conductor's text in, what it earned out.

The engine, the workflow, the parser and the calls are those of serving; only the orchestrator is a text that is there
already, and `origin` is `rollout`. Workers are the sandbox's programs in this process (`sandbox_scene`), or any
`Workers` over HTTP. A fault of a worker's server is no verdict on a plan: then the outcome is unknown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from distill.conductor.example import Asked, asked
from distill.conductor.reward import UNPARSED, Earned, RewardConfig, earned
from harness.engine.acts import Roles
from harness.engine.deciders import Choice, Written
from harness.engine.engine import Engine, final
from harness.engine.events import Done
from harness.engine.learned import Form
from harness.engine.limits import Limits
from harness.engine.log import MemoryLog
from harness.engine.patterns.workflow import Workflow, WorkflowSettings
from harness.engine.plan.grammar import MAX_STEPS
from harness.engine.plan.parse import parse
from harness.engine.request import Message, Request
from harness.engine.workers import CallResult, CallRow, LocalWorkers, Sink, Workers
from harness.routing.base import Ask, RouterUsage
from harness.routing.eligibility import Eligibility
from harness.routing.exploration import forced
from pointsman.config.model import WorkerConfig
from pointsman.errors import UserError
from pointsman.ids import new_id
from pointsman.pool import Pool, Price, Worker
from pointsman.sandbox.server import app
from pointsman.sandbox.setup import ROUTER_PRICE, worker_configs
from pointsman.sandbox.world import CardKind
from pointsman.verifiers import verify
from pointsman.words import CallPurpose, DecisionKind

CONDUCTOR_PRICE = Price(ROUTER_PRICE["input"], ROUTER_PRICE["output"], ROUTER_PRICE["input"])
"""What a conductor's tokens cost in the sandbox, learned or prompted: the same."""
_MILLION = 1e6


@dataclass(frozen=True)
class Item:
    """A request to be planned for: `names` are the workers offered, in no order; `seed` draws the order shown."""

    id: str
    prompt: str
    verifier: Mapping[str, Any]
    names: tuple[str, ...]
    seed: int
    family: str = ""


@dataclass(frozen=True)
class Rolled:
    """One rollout. `cost` in USD, the conductor's tokens among them; `steps` of the plan that ran, 0 where none did."""

    earned: Earned
    cost: float
    steps: int
    answer: str = ""
    workers: tuple[str, ...] = ()

    @property
    def parsed(self) -> bool:
        return self.steps > 0


@dataclass(frozen=True)
class Scene:
    """Where rollouts happen. `max_worker_tokens` caps every worker's reply, as the authors did to save money."""

    pool: Pool
    workers: Workers
    reward: RewardConfig = field(default_factory=RewardConfig)
    form: Form = "short"
    max_steps: int = MAX_STEPS
    max_worker_tokens: int = 4_096
    deadline: float = 120.0
    at_once: int = 8
    price: Price = CONDUCTOR_PRICE

    def offered(self, names: Sequence[str]) -> tuple[Worker, ...]:
        return tuple(worker for worker in self.pool.workers if worker.name in set(names))

    def asked(self, item: Item) -> Asked:
        """What the conductor is asked for an item."""
        return asked(Ask(item.prompt), self.offered(item.names), item.seed, self.form, self.max_steps)

    def roll(self, pairs: Sequence[tuple[Item, str, RouterUsage]]) -> list[Rolled]:
        """(item, the conductor's text, its tokens) → what came of each, in order."""
        return asyncio.run(self._all(pairs))

    async def _all(self, pairs: Sequence[tuple[Item, str, RouterUsage]]) -> list[Rolled]:
        room = asyncio.Semaphore(self.at_once)

        async def one(item: Item, text: str, usage: RouterUsage) -> Rolled:
            async with room:
                return await self.roll_one(item, text, usage)

        # Workers over HTTP belong to this event loop: they are opened and closed with it.
        opened = self.workers if isinstance(self.workers, AbstractAsyncContextManager) else nullcontext()
        async with opened:
            return list(await asyncio.gather(*(one(*pair) for pair in pairs)))

    async def roll_one(self, item: Item, text: str, usage: RouterUsage) -> Rolled:
        """Carries one plan out. Text that is no plan earns 0 and calls nobody."""
        parsed = parse(text, self.asked(item).options, max_steps=self.max_steps)
        spent = _cost(usage, self.price)
        if parsed.plan is None:
            return Rolled(UNPARSED, spent, 0)
        done = await final(
            self._engine(item, Scripted(text, usage)).run(self._workflow(), _request(item), self._limits())
        )
        cost = spent + float(done.totals.cost or 0)
        names = tuple(step.worker or "" for step in parsed.plan.steps)
        if not isinstance(done, Done):
            unknown = replace(earned(0.0, cost, self.reward), outcome=float("nan"))
            return Rolled(unknown, cost, len(names), workers=names)
        right = float(verify(item.verifier, done.answer)) if done.answer else 0.0
        return Rolled(earned(right, cost, self.reward), cost, len(names), done.answer or "", names)

    def _engine(self, item: Item, deciders: Scripted) -> Engine:
        pool = Pool(self.offered(item.names))
        return Engine(pool, Capped(self.workers, self.max_worker_tokens), deciders, MemoryLog())

    def _workflow(self) -> Workflow:
        return Workflow(WorkflowSettings(self.max_steps, repairs=0))

    def _limits(self) -> Limits:
        return Limits(deadline=asyncio.get_running_loop().time() + self.deadline)


@dataclass(frozen=True)
class Scripted:
    """Deciders of a rollout: the plan is `text`. Nobody else is chosen, since a plan names its workers."""

    text: str
    usage: RouterUsage

    async def decide(
        self, kind: DecisionKind, ask: Ask, eligible: Eligibility, seed: int, roles: Roles | None = None
    ) -> Choice:
        return Choice(forced(eligible.workers[0].name, "rule"))

    async def write(self, messages: list[Message], max_tokens: int, seed: int) -> Written:
        return Written(self.text, self.usage, "rollout")


@dataclass(frozen=True)
class Capped:
    """Workers whose replies have at most `tokens`, whatever the client wanted."""

    inner: Workers
    tokens: int

    async def call(
        self,
        worker: Worker,
        messages: list[Message],
        *,
        stream: Sink | None,
        tools: Sequence[dict[str, Any]],
        deadline: float,
        purpose: CallPurpose,
        fields: Mapping[str, Any],
        fallbacks: Sequence[Worker],
        rows: list[CallRow],
    ) -> CallResult:
        """No fallbacks: a plan earns what the worker that it names answers."""
        capped = {**fields, "max_tokens": self.tokens}
        return await self.inner.call(
            worker,
            messages,
            stream=stream,
            tools=tools,
            deadline=deadline,
            purpose=purpose,
            fields=capped,
            fallbacks=(),
            rows=rows,
        )


def sandbox_scene(world: int, cards: CardKind, **settings: Any) -> Scene:
    """The sandbox's workers as programs in this process: no HTTP, no waiting."""
    entries = worker_configs(world, "http://127.0.0.1:9/v1", cards)
    pool = Pool(tuple(Worker.of(WorkerConfig.model_validate(entry)) for entry in entries))
    return Scene(pool, LocalWorkers(_answering(world, int(settings.get("max_worker_tokens", 4_096)))), **settings)


def _answering(world: int, tokens: int) -> Callable[[str, list[Message], Sequence[dict[str, Any]]], Any]:
    programs = app(world, latency_scale=0.0).programs

    async def answer(name: str, messages: list[Message], tools: Sequence[dict[str, Any]]) -> str:
        if name not in programs:
            raise UserError(f"the sandbox has no worker {name!r}")
        return programs[name].reply({"messages": messages, "max_tokens": tokens}).text or ""

    return answer


def _request(item: Item) -> Request:
    messages = [{"role": "user", "content": item.prompt}]
    return Request(new_id(), new_id(), new_id(), new_id(), messages, Ask(item.prompt), {}, "rollout", item.seed)


def _cost(usage: RouterUsage, price: Price) -> float:
    tokens = (usage.input_tokens or 0) * price.input + (usage.output_tokens or 0) * price.output
    return float(Decimal(tokens)) / _MILLION
