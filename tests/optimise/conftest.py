"""A small pool whose workers each know one subject, and the sandbox's stand-in as the router LLM."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import cache
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.optimise.rows import Comment, Row, Rows
from harness.routing.base import Ask
from pointsman.pool import Worker
from pointsman.sandbox import router_llm

WORKERS = ("amber-7b", "basalt-pro", "cobalt-mini")
SUBJECTS = {
    "amber-7b": ("Convert {a} kilograms to pounds.", "How many inches are {a} feet?", "{a} litres in gallons, please"),
    "basalt-pro": (
        "Decode this Morse: .- -... number {a}",
        "Shift the letters by {a} (Caesar cipher).",
        "{a} in binary?",
    ),
    "cobalt-mini": (
        "Which weekday was {a} days ago?",
        "Is {a} a leap year?",
        "How many days until the {a}th deadline?",
    ),
}
POOR = {name: f"Known for grace and quiet valleys, number {n}." for n, name in enumerate(WORKERS)}
GOOD = {
    "amber-7b": "Strong at unit conversion: weights, lengths, volumes, pounds, inches, litres and gallons.",
    "basalt-pro": "Strong at ciphers and codes: Morse, Caesar, binary and hexadecimal.",
    "cobalt-mini": "Strong at calendar questions: dates, weekdays, leap years and deadlines.",
}


def make_rows(
    n: int, seed: int = 1, *, skill: float = 0.95, other: float = 0.3, texts: dict[int, str] | None = None
) -> Rows:
    """`n` requests in time's order, each with a single noisy outcome per worker."""
    rng = Random(seed)
    rows, rewards = [], []
    for index in range(n):
        expert = rng.choice(WORKERS)
        text = rng.choice(SUBJECTS[expert]).format(a=rng.randint(2, 99_999))
        if texts and index in texts:
            text = texts[index]
        rows.append(
            Row(f"row-{seed}-{index}", f"episode-{seed}-{index}", Ask(text), float(index), key=f"key-{index % 5}")
        )
        rewards.append([float(rng.random() < (skill if name == expert else other)) for name in WORKERS])
    return Rows(WORKERS, tuple(rows), np.array(rewards), np.full((n, len(WORKERS)), 0.001))


def worker(name: str, card: str = "A worker.") -> Worker:
    return Worker(name=name, card=card, model=name, endpoints=())


@cache
def _reply(prompt: str) -> router_llm.RouterReply:
    """The stand-in reads the last message alone; one prompt has one reply, in whichever test it is asked."""
    return router_llm.reply([{"role": "user", "content": prompt}])


class StandIn:
    """The sandbox's router LLM as a function; counts what it is asked, and fails or breaks off where told to."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.fail_after: int | None = None
        self.error: Exception | None = None

    async def __call__(self, body: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        if self.fail_after is not None and len(self.asked) >= self.fail_after:
            assert self.error is not None
            raise self.error
        self.asked.append(body)
        reply = _reply(body["messages"][-1]["content"])
        logprobs = router_llm.openai_logprobs(reply, 20) if body.get("logprobs") else None
        choice = {"message": {"role": "assistant", "content": reply.text}, "logprobs": logprobs}
        return {"choices": [choice], "usage": {"prompt_tokens": 100, "completion_tokens": 10}}


@pytest.fixture
def toy() -> Any:
    """The toy pool: `toy.rows(n, seed)`, `toy.workers`, `toy.poor`, `toy.good`, `toy.comment(...)`."""
    return SimpleNamespace(
        rows=make_rows,
        names=WORKERS,
        workers=tuple(worker(name) for name in WORKERS),
        poor=dict(POOR),
        good=dict(GOOD),
        comment=Comment,
    )


@pytest.fixture
def stand_in() -> StandIn:
    return StandIn()


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as made:
        yield made
