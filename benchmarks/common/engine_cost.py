"""What the engine itself costs: CPU per decision of runs whose workers and routers answer at once, in this process."""

from __future__ import annotations

import asyncio
import time
from decimal import Decimal

from harness.engine.acts import Policy
from harness.engine.deciders import ChainDeciders, Orchestrator
from harness.engine.engine import Engine, final
from harness.engine.log import MemoryLog
from harness.engine.patterns.single import Single
from harness.engine.patterns.trinity import Trinity
from harness.engine.patterns.workflow import Workflow
from harness.engine.request import Message, Request
from harness.engine.workers import LocalWorkers
from harness.routing.base import Ask
from harness.routing.chain import Chain
from harness.routing.default import DefaultRouter
from pointsman.ids import new_id
from pointsman.pool import Endpoint, Pool, Price, Worker

_PLAN = """\
workers = ["A", "B", "C", "A", "B"]
subtasks = ["Part one.", "Part two.", "Part three.", "Part four.", "Join them."]
access = ["none", "none", "none", [1, 2], "all"]"""
_PRICE = Price(Decimal(1), Decimal(2), Decimal(1))
_QUESTION = "Which way do the points lie? " * 20


async def _answering(name: str, messages: list[Message], tools: object) -> str:
    text = messages[-1]["content"]
    if "thinker of a team" in text:
        return "Suggestion: look at the signal\nNext role: solver"
    return "REVISE. Look again." if "verifier of a team" in text else f"{name}: to the left, as far as I can see."


async def _lm(body: dict[str, object]) -> dict[str, object]:
    usage = {"prompt_tokens": 100, "completion_tokens": 60}
    return {"choices": [{"message": {"content": _PLAN}}], "usage": usage}


async def _runs(policy: Policy, runs: int) -> tuple[float, int]:
    """(CPU seconds, decisions)."""
    pool = Pool(
        tuple(
            Worker(name, f"Good at what {name} does.", name, (Endpoint("http://127.0.0.1:9/v1"),), _PRICE)
            for name in ("ada", "bob", "cyd", "dot", "eve", "fay")
        )
    )
    chain = Chain([DefaultRouter()], time.monotonic)
    deciders = ChainDeciders(chain, epsilon=0.05, orchestrator=Orchestrator(_lm, "conductor", _PRICE))
    messages: list[Message] = [{"role": "user", "content": _QUESTION}]
    decisions = 0
    began = time.process_time()
    for seed in range(runs):
        log = MemoryLog()
        request = Request(new_id(), new_id(), new_id(), new_id(), messages, Ask(_QUESTION), seed=seed)
        await final(Engine(pool, LocalWorkers(_answering), deciders, log).run(policy, request))
        decisions += len(log.decisions)
    return time.process_time() - began, decisions


def engine_cpu_ms(runs: int = 200) -> dict[str, float]:
    """Milliseconds of CPU per decision, by pattern; worker, router and log take no time worth the name."""
    found: dict[str, float] = {}
    for policy in (Single(), Trinity(), Workflow()):
        asyncio.run(_runs(policy, max(5, runs // 10)))  # warm
        seconds, decisions = asyncio.run(_runs(policy, runs))
        found[policy.kind] = round(seconds * 1000 / decisions, 4)
    return found


if __name__ == "__main__":
    print(engine_cpu_ms())
