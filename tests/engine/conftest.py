"""Engines over workers that are plain functions, and over a scripted upstream by real HTTP."""

from __future__ import annotations

import importlib.util
import json
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from harness.engine.deciders import ChainDeciders, Orchestrator
from harness.engine.engine import Engine, everybody
from harness.engine.events import Done, Failed
from harness.engine.limits import Limits
from harness.engine.log import MemoryLog
from harness.engine.memory import LocalMemory
from harness.engine.request import Request
from harness.engine.upstream_workers import UpstreamWorkers
from harness.engine.workers import CallResult, LocalWorkers
from harness.routing.base import Ask, RouterVersion, Scored
from harness.routing.chain import Chain
from harness.routing.default import DefaultRouter
from pointsman.ids import new_id
from pointsman.pool import Endpoint, Pool, Price, Worker
from pointsman.upstream.attempts import Attempts
from pointsman.upstream.attempts import Limits as CallLimits
from pointsman.upstream.breaker import Breaker
from pointsman.upstream.pooled import PooledTransport

NAMES = ("ada", "bob", "cyd")
PRICE = Price(Decimal(1), Decimal(2), Decimal("0.5"))
TOOLS = frozenset({"tools"})


def pool_of(names: Any = NAMES, url: str = "http://127.0.0.1:9/v1", **changes: Any) -> Pool:
    """Workers whose provider model is their name."""
    return Pool(
        tuple(
            Worker(
                name, f"Card of {name}.", name, (Endpoint(url),), **{"price": PRICE, "capabilities": TOOLS, **changes}
            )
            for name in names
        )
    )


class ByWord:
    """A router that prefers the worker whose name stands in the ask; keeps what it was asked."""

    kind = "rule"
    deadline = 1.0
    version = RouterVersion("rule", {"test": True})

    def __init__(self) -> None:
        self.asked: list[Ask] = []

    async def score(self, ask: Ask, workers: tuple[Worker, ...], seed: int) -> Scored:
        return self.score_now(ask, workers, seed)

    def score_now(self, ask: Ask, workers: tuple[Worker, ...], seed: int) -> Scored:
        self.asked.append(ask)
        told = f"{ask.text} {ask.context}"
        return Scored({worker.name: float(worker.name in told) for worker in workers})


@dataclass
class Team:
    """An engine with its parts in reach. `say` is what workers do: (name, text of the last message) → a reply.

    A reply may be a text, a `CallResult` or an exception. `plans` are the orchestrator's texts, one after another.
    """

    say: Any = None
    plans: list[Any] = field(default_factory=list)
    roles: bool = False
    epsilon: float = 0.0
    pool: Pool = field(default_factory=pool_of)
    workers: Any = None
    memory: Any = field(default_factory=LocalMemory)
    log: Any = field(default_factory=MemoryLog)
    eligible: Any = None
    router: Any = field(default_factory=ByWord)
    seen: list[tuple[str, list[dict[str, Any]]]] = field(default_factory=list)
    prompts: list[list[dict[str, str]]] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    episode: str = field(default_factory=new_id)
    project: str = field(default_factory=new_id)

    def engine(self) -> Engine:
        asked = Orchestrator(self._lm, "conductor", PRICE, roles=self.roles) if self.plans or self.roles else None
        chain = Chain([self.router, DefaultRouter()], time.monotonic)
        deciders = ChainDeciders(chain, epsilon=self.epsilon, orchestrator=asked)
        workers = self.workers or LocalWorkers(self._answer)
        return Engine(
            self.pool, workers, deciders, self.log, self.eligible or (lambda: everybody(self.pool)), self.memory
        )

    def request(self, text: str = "The question.", **changes: Any) -> Request:
        messages = changes.pop("messages", [{"role": "user", "content": text}])
        made = Request(new_id(), self.project, self.episode, new_id(), messages, Ask(text), seed=7)
        return msgspec.structs.replace(made, **changes)

    async def run(
        self, policy: Any, request: Any = None, limits: Limits | None = None, **options: Any
    ) -> Done | Failed:
        """The last event; all of them stay in `events`."""
        asked = request or self.request()
        self.events = [event async for event in self.engine().run(policy, asked, limits or Limits(), **options)]
        return self.events[-1]

    async def resume(self, policy: Any, state: Any, results: dict[str, str], **options: Any) -> Done | Failed:
        resumed = self.engine().resume(policy, state, self.request(), results, **options)
        self.events = [event async for event in resumed]
        return self.events[-1]

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def texts(self, name: str | None = None) -> list[str]:
        """The last message's text of every call, in order."""
        return [messages[-1]["content"] for worker, messages in self.seen if name in (None, worker)]

    async def _answer(self, name: str, messages: list[dict[str, Any]], tools: Any) -> Any:
        self.seen.append((name, messages))
        said = self.say(name, messages[-1]["content"])
        if hasattr(said, "__await__"):
            said = await said
        if isinstance(said, BaseException):
            raise said
        return said

    async def _lm(self, body: dict[str, Any]) -> dict[str, Any]:
        self.prompts.append(body["messages"])
        said = self.plans.pop(0)
        if isinstance(said, BaseException):
            raise said
        usage = {"prompt_tokens": 100, "completion_tokens": 20}
        return {"choices": [{"message": {"content": said}}], "usage": usage}


def calls(name: str, identity: str = "call_0", **arguments: Any) -> CallResult:
    """A reply that calls a tool."""
    call = {"id": identity, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return CallResult("?", None, [call], "tool_calls", cost=Decimal(0))


def plan(*steps: tuple[str, str, Any]) -> str:
    """A conductor's reply: (worker's name, subtask, access) per step."""
    lists = zip(*steps, strict=True) if steps else ((), (), ())
    return "\n".join(
        f"{label} = {json.dumps(list(values))}"
        for label, values in zip(("workers", "subtasks", "access"), lists, strict=True)
    )


@pytest.fixture
def team() -> Any:
    """`team(say, plans=…)` makes a `Team`."""
    return lambda say=None, **options: Team(say, **options)


@pytest.fixture
def kit() -> Any:
    """What tests of the engine share."""
    return SimpleNamespace(calls=calls, plan=plan, pool_of=pool_of, price=PRICE, Team=Team)


def _support(name: str) -> Any:
    full = f"pointsman_tests_{name}"
    if full not in sys.modules:
        file = Path(__file__).parent.parent / "support" / f"{name}.py"
        spec = importlib.util.spec_from_file_location(full, file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[full] = module
        spec.loader.exec_module(module)
    return sys.modules[full]


@pytest.fixture(scope="session")
def fake() -> Any:
    """The module tests/support/fake_upstream.py."""
    return _support("fake_upstream")


@pytest.fixture(scope="session")
def running_upstream(fake: Any) -> Iterator[Any]:
    upstream = fake.Upstream()
    yield upstream
    upstream.close()


@pytest.fixture
def upstream(running_upstream: Any) -> Any:
    running_upstream.clear()
    return running_upstream


@pytest.fixture
async def over_http(team: Any) -> Any:
    """`over_http(url, …)`: a `Team` whose workers are reached by HTTP at `url`, through the one retry loop."""
    transport = PooledTransport()
    breaker = Breaker(5, 5.0, time.monotonic)
    headers = {"content-type": "application/json"}
    attempts = Attempts(transport, breaker, lambda worker, endpoint: headers, lambda worker: worker.endpoints[0])
    limits = CallLimits(connect=1, first_token=5, gap=5, attempts=3, max_retry_after=1, backoff=0.01)

    def make(url: str, names: Any = NAMES, **options: Any) -> Team:
        return Team(
            pool=options.pop("pool", None) or pool_of(names, url), workers=UpstreamWorkers(attempts, limits), **options
        )

    yield make
    await transport.close()


@pytest.fixture
def rng() -> random.Random:
    return random.Random(5)
