"""One sandbox world with an engine over it: workers, router LLM and conductor by HTTP, their tokens and USD counted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from harness.engine.acts import Policy
from harness.engine.deciders import ChainDeciders, Orchestrator
from harness.engine.engine import Engine, final
from harness.engine.events import Done
from harness.engine.log import MemoryLog
from harness.engine.patterns.single import Single
from harness.engine.request import Request
from harness.engine.upstream_workers import UpstreamWorkers
from harness.routing.base import Ask
from harness.routing.chain import Chain
from harness.routing.default import DefaultRouter
from harness.routing.eligibility import Eligibility
from harness.routing.lm import chat_lm
from harness.routing.prompted import PromptedRouter
from harness.routing.template import default_template
from pointsman.config import WorkerConfig
from pointsman.ids import new_id
from pointsman.pool import Pool, Price, Worker
from pointsman.sandbox import router_llm
from pointsman.sandbox.serve import serving
from pointsman.sandbox.setup import ROUTER_PRICE, worker_configs
from pointsman.sandbox.tasks import Task
from pointsman.sandbox.world import CardKind
from pointsman.upstream.attempts import Attempts, Limits
from pointsman.upstream.breaker import Breaker
from pointsman.upstream.pooled import PooledTransport
from pointsman.verifiers import verify

AT_ONCE = 8


@dataclass(frozen=True)
class Ran:
    """One task answered. `cost` in USD; tokens and cost are of all calls, routers and conductor included.

    `calls` are to workers alone.
    """

    reward: float
    tokens: int
    cost: float
    worker: str | None
    answer: str
    decisions: int
    calls: int


class Scene:
    """Runs patterns on tasks of one world. `cards` are the kind of its cards."""

    def __init__(self, seed: int, url: str, cards: CardKind, transport: PooledTransport) -> None:
        entries = worker_configs(seed, f"{url}/v1", cards)
        self.seed = seed
        self.pool = Pool(tuple(Worker.of(WorkerConfig.model_validate(entry)) for entry in entries))
        price = Price(ROUTER_PRICE["input"], ROUTER_PRICE["output"], ROUTER_PRICE["input"])
        lm = chat_lm(transport, f"{url}/v1", None, 5.0)
        shown = {worker.name: worker.card for worker in self.pool.workers}
        router = PromptedRouter(default_template(), lm, model=router_llm.MODEL, cards=shown, deadline=30, price=price)
        chain = Chain([router, DefaultRouter()], time.monotonic)
        asked = Orchestrator(lm, router_llm.MODEL, price)  # roles go by the pattern's rule, as they do by default
        self._deciders = ChainDeciders(chain, epsilon=0.0, orchestrator=asked)
        headers = {"content-type": "application/json"}
        breaker = Breaker(5, 5.0, time.monotonic)
        attempts = Attempts(transport, breaker, lambda worker, endpoint: headers, lambda worker: worker.endpoints[0])
        limits = Limits(connect=5, first_token=30, gap=30, attempts=3, max_retry_after=1, backoff=0.01)
        self._workers = UpstreamWorkers(attempts, limits)
        self._room = asyncio.Semaphore(AT_ONCE)

    @property
    def by_price(self) -> list[str]:
        """The workers' names, the cheapest first."""
        prices = {worker.name: worker.price for worker in self.pool.workers}
        return sorted(prices, key=lambda name: prices[name].output if prices[name] else 0)

    async def run(self, policy: Policy, task: Task, fields: Mapping[str, Any] | None = None, only: str = "") -> Ran:
        """One task by one pattern; `only` leaves one worker to choose from (then no router is asked)."""
        log = MemoryLog()
        eligible = (lambda: self._only(only)) if only else None
        engine = Engine(self.pool, self._workers, self._deciders, log, eligible)
        messages = [{"role": "user", "content": task.prompt}]
        request = Request(
            new_id(), new_id(), new_id(), new_id(), messages, Ask(task.prompt), dict(fields or {}), "rollout", self.seed
        )
        async with self._room:
            done = await final(engine.run(policy, request))
        totals = done.totals
        answer = done.answer or "" if isinstance(done, Done) else ""
        cost = float(totals.cost or 0) + float(totals.router_cost or 0)
        worker = done.worker if isinstance(done, Done) else None
        reward = float(verify(task.verifier, answer)) if answer else 0.0
        return Ran(reward, totals.tokens, cost, worker, answer, len(log.decisions), totals.calls)

    async def attempt(self, worker: str, task: Task, number: int) -> Ran:
        """One worker's answer; another `number` is another sample, by the request's `seed`."""
        return await self.run(Single(), task, {"seed": number} if number else {}, worker)

    def _only(self, name: str) -> Eligibility:
        reasons = {worker.name: None if worker.name == name else "excluded" for worker in self.pool.workers}
        return Eligibility(reasons, False, (self.pool.by_name[name],))


@asynccontextmanager
async def scene(seed: int, cards: CardKind) -> AsyncIterator[Scene]:
    transport = PooledTransport()
    with serving(seed) as url:
        try:
            yield Scene(seed, url, cards, transport)
        finally:
            await transport.close()
