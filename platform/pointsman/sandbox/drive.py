"""The traffic driver: sends a world's tasks as any OpenAI client would, and gives feedback as any client would.

It knows a task's verifier, never the skill table, and sends neither gold nor family. Turns of one
conversation and tool loops come with the families that need them.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import Any

import aiohttp

from pointsman.sandbox.roster import world_rng
from pointsman.sandbox.tasks import Split, Task, tasks
from pointsman.verifiers import verify

Progress = Callable[[int, int], None]
"""Called with requests done and requests in all."""

PATIENCE = 120.0


@dataclass(frozen=True)
class Sent:
    """One request's end. `status` is the HTTP status, or the name of what broke off."""

    task: Task
    status: int | str
    worker: str | None = None
    decision_id: str | None = None
    answer: str | None = None
    correct: bool | None = None
    feedback_status: int | str | None = None
    streamed: bool = False

    @property
    def ok(self) -> bool:
        return self.status == 200 and self.answer is not None


@dataclass(frozen=True)
class DriveReport:
    """What the driver saw. `correct` is the share of answered requests that the verifier accepts."""

    requests: int
    ok: int
    failed: Mapping[str, int]
    correct: float | None
    interval: tuple[float, float] | None
    picks_by_worker: Mapping[str, int]
    feedback: Mapping[str, int]
    seconds: float
    sent: tuple[Sent, ...] = field(repr=False, default=())

    @property
    def picks(self) -> list[tuple[Task, str]]:
        """(task, worker that answered) of every answered request, for routing accuracy."""
        return [(item.task, item.worker) for item in self.sent if item.ok and item.worker is not None]


@dataclass(frozen=True)
class _Plan:
    """What is decided of a request before it is sent, so that a drive repeats by its seed."""

    task: Task
    stream: bool
    give_feedback: bool


async def drive(
    base_url: str,
    requests: int,
    seed: int,
    *,
    api_key: str | None = None,
    concurrency: int = 8,
    stream_share: float = 0.5,
    feedback_share: float = 0.5,
    split: Split = "train",
    model: str = "pointsman",
    skip: int = 0,
    on_progress: Progress | None = None,
) -> DriveReport:
    """Sends `requests` tasks of a split, after its first `skip`, to `base_url` (it ends in /v1)."""
    rng = world_rng(seed, f"drive/{split}")
    planned = (_plan(rng, task, stream_share, feedback_share) for task in tasks(seed, split, skip + requests))
    plans = list(islice(planned, skip, None))
    started = time.monotonic()
    driver = _Driver(base_url.rstrip("/"), api_key, model)
    sent: list[Sent] = []
    async for item in driver.all(plans, concurrency):
        sent.append(item)
        if on_progress:
            on_progress(len(sent), requests)
    return report(sent, time.monotonic() - started)


def report(sent: Iterable[Sent], seconds: float) -> DriveReport:
    """The summary of what was sent."""
    items = tuple(sent)
    answered = [item for item in items if item.ok]
    right = sum(item.correct is True for item in answered)
    return DriveReport(
        requests=len(items),
        ok=len(answered),
        failed=dict(Counter(str(item.status) for item in items if not item.ok)),
        correct=right / len(answered) if answered else None,
        interval=wilson(right, len(answered)) if answered else None,
        picks_by_worker=dict(Counter(item.worker or "(none)" for item in answered)),
        feedback=dict(Counter(str(i.feedback_status) for i in items if i.feedback_status is not None)),
        seconds=seconds,
        sent=items,
    )


def wilson(successes: int, trials: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's 95% score interval of a proportion (Wilson 1927)."""
    share = successes / trials
    denominator = 1 + z * z / trials
    centre = share + z * z / (2 * trials)
    spread = z * ((share * (1 - share) + z * z / (4 * trials)) / trials) ** 0.5
    return max(0.0, (centre - spread) / denominator), min(1.0, (centre + spread) / denominator)


def _plan(rng: Random, task: Task, stream_share: float, feedback_share: float) -> _Plan:
    return _Plan(task, rng.random() < stream_share, rng.random() < feedback_share)


class _Driver:
    """One client: its address, key and connections."""

    def __init__(self, base_url: str, api_key: str | None, model: str) -> None:
        self._base_url = base_url
        self._headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        self._model = model

    async def all(self, plans: list[_Plan], concurrency: int) -> AsyncIterator[Sent]:
        """Every plan's end, in the order in which they end, `concurrency` at a time."""
        queue = iter(plans)
        timeout = aiohttp.ClientTimeout(total=PATIENCE)
        connector = aiohttp.TCPConnector(limit=concurrency)
        async with aiohttp.ClientSession(headers=self._headers, timeout=timeout, connector=connector) as session:
            running = {asyncio.create_task(self._one(session, plan)) for plan in islice(queue, concurrency)}
            try:
                while running:
                    done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                    for finished in done:
                        if (plan := next(queue, None)) is not None:
                            running.add(asyncio.create_task(self._one(session, plan)))
                        yield finished.result()
            finally:
                for task in running:
                    task.cancel()

    async def _one(self, session: aiohttp.ClientSession, plan: _Plan) -> Sent:
        sent = await self._ask(session, plan)
        if not sent.ok or sent.answer is None:
            return sent
        correct = verify(plan.task.verifier, sent.answer) >= 0.5
        status = await self._feedback(session, sent, correct) if plan.give_feedback else None
        return Sent(plan.task, sent.status, sent.worker, sent.decision_id, sent.answer, correct, status, plan.stream)

    async def _ask(self, session: aiohttp.ClientSession, plan: _Plan) -> Sent:
        body: dict[str, Any] = {"model": self._model, "messages": [{"role": "user", "content": plan.task.prompt}]}
        if plan.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        try:
            async with session.post(f"{self._base_url}/chat/completions", json=body) as response:
                answer, fault = await _read_answer(response, plan.stream)
                worker = response.headers.get("x-pointsman-worker")
                decision = response.headers.get("x-pointsman-decision-id")
                return Sent(plan.task, fault or response.status, worker, decision, answer, streamed=plan.stream)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            return Sent(plan.task, type(error).__name__, streamed=plan.stream)

    async def _feedback(self, session: aiohttp.ClientSession, sent: Sent, correct: bool) -> int | str:
        if sent.decision_id is None:
            return "no decision id"
        body = {
            "decision_id": sent.decision_id,
            "metric": "correct",
            "value": correct,
            "source": "verifier",
            "idempotency_key": f"sandbox-drive-{sent.decision_id}",
        }
        try:
            async with session.post(f"{self._base_url}/feedback", json=body) as response:
                await response.read()
                return response.status
        except (aiohttp.ClientError, TimeoutError) as error:
            return type(error).__name__


async def _read_answer(response: aiohttp.ClientResponse, stream: bool) -> tuple[str | None, str | None]:
    """The answer's text, and what broke a stream off (None where nothing did)."""
    if response.status != 200:
        await response.read()
        return None, None
    if not stream:
        return _content((await response.json())["choices"], "message"), None
    pieces: list[str] = []
    async for line in response.content:
        if not line.startswith(b"data:"):
            continue
        data = line[5:].strip()
        if data == b"[DONE]":
            return "".join(pieces), None
        chunk = json.loads(data)
        if "error" in chunk:
            return None, "error in the stream"
        pieces.append(_content(chunk.get("choices") or [], "delta") or "")
    return None, "stream without its end"


def _content(choices: list[dict[str, Any]], part: str) -> str | None:
    content = choices[0][part].get("content") if choices else None
    return content if isinstance(content, str) else None
