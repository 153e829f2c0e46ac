"""What a world's search learns from: its workers, really asked over HTTP, and marked by the tasks' verifiers.

Learning rows ask the shown wordings of every family, certification and last rows the held-out ones, in every world
alike (the sandbox's own splits ask only held-out wordings in worlds from 1000 on). No prompt is asked twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import aiohttp
import numpy as np

from harness.optimise.rows import Row, Rows
from harness.routing.base import Ask
from pointsman.sandbox.families import FAMILIES
from pointsman.sandbox.roster import mix, world_rng
from pointsman.sandbox.tasks import Task
from pointsman.sandbox.world import World
from pointsman.verifiers import verify

CONCURRENCY = 16


def draw(seed: int, purpose: str, n: int, *, held_out: bool, taken: set[str]) -> list[Task]:
    """`n` tasks of the world's mix whose prompts are not in `taken`, which grows by them."""
    rng = world_rng(seed, f"optimise/{purpose}")
    families, shares = list(FAMILIES), mix(seed)
    weights = [shares[family.name] for family in families]
    made: list[Task] = []
    while len(made) < n:
        family = rng.choices(families, weights)[0]
        template = rng.choice(family.held_out if held_out else family.templates)
        prompt, verifier = template.ask(rng)
        if prompt not in taken:
            taken.add(prompt)
            made.append(Task(f"{purpose}-{len(made)}", family.name, family.skills, prompt, verifier))
    return made


def probed(seed: int, base_url: str, tasks: Sequence[Task], *, first: float, labels: bool) -> Rows:
    """Every worker's answer to every task, marked. `labels` tells the rows' task families, which a request does not."""
    names = World(seed).names
    rewards = asyncio.run(_ask_all(base_url, names, tasks))
    rows = tuple(
        Row(task.id, task.id, Ask(task.prompt), first + number, task.family if labels else None)
        for number, task in enumerate(tasks)
    )
    return Rows(names, rows, rewards, np.full(rewards.shape, np.nan))


async def _ask_all(base_url: str, names: Sequence[str], tasks: Sequence[Task]) -> np.ndarray:
    places = asyncio.Semaphore(CONCURRENCY)
    async with aiohttp.ClientSession() as session:

        async def one(name: str, task: Task) -> float:
            body = {"model": name, "messages": [{"role": "user", "content": task.prompt}]}
            async with places, session.post(f"{base_url}/chat/completions", json=body) as response:
                answer = (await response.json())["choices"][0]["message"]["content"]
            return verify(task.verifier, answer)

        cells = await asyncio.gather(*(one(name, task) for task in tasks for name in names))
    return np.array(cells, dtype=float).reshape(len(tasks), len(names))
