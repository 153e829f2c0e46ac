"""Micro-batching: questions that come within a few milliseconds share a forward pass.

An idle server answers at once: it waits only while a pass is under way, since what comes meanwhile is the next batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from distill.arrays import Floats
from pointsman.errors import PointsmanError

MOST = 32
Score = Callable[[str, list[str]], tuple[tuple[str, ...], Floats]]


@dataclass(frozen=True, eq=False)
class Question:
    version: str
    text: str
    endpoints: tuple[str, ...]
    answer: asyncio.Future[dict[str, Any]]


class Batches:
    """Answers questions by `score(version, texts)`, run in `executor`; `sizes` counts the batches by their size."""

    def __init__(self, score: Score, executor: Executor, most: int = MOST) -> None:
        self._score, self._executor, self._most = score, executor, most
        self._queue: asyncio.Queue[Question] = asyncio.Queue()
        self.sizes: dict[int, int] = {}

    async def ask(self, version: str, text: str, endpoints: tuple[str, ...]) -> dict[str, Any]:
        """`{"scores": [...]}` in the order of the endpoints, or `{"error": ...}`."""
        question = Question(version, text, endpoints, asyncio.get_running_loop().create_future())
        self._queue.put_nowait(question)
        return await question.answer

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            batch = [await self._queue.get()]
            while not self._queue.empty() and len(batch) < self._most:
                batch.append(self._queue.get_nowait())
            batch = [one for one in batch if not one.answer.done()]
            by_version: dict[str, list[Question]] = {}
            for one in batch:
                by_version.setdefault(one.version, []).append(one)
            for version, some in by_version.items():
                self.sizes[len(some)] = self.sizes.get(len(some), 0) + 1
                try:
                    endpoints, scores = await loop.run_in_executor(
                        self._executor, self._score, version, [one.text for one in some]
                    )
                except PointsmanError as error:
                    _all(some, {"error": str(error)})
                    continue
                place = {endpoint: number for number, endpoint in enumerate(endpoints)}
                for one, row in zip(some, scores.tolist(), strict=True):
                    _say(one, {"scores": [row[place[e]] if e in place else None for e in one.endpoints]})


def _all(questions: list[Question], answer: dict[str, Any]) -> None:
    for one in questions:
        _say(one, answer)


def _say(question: Question, answer: dict[str, Any]) -> None:
    if not question.answer.done():
        question.answer.set_result(answer)
