"""One judge: it grades an answer, or compares two, in both orders, since judges favour a place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property

from pointsman.config import Config
from pointsman.hashing import content_hash
from pointsman.judge.prompts import Vote, filled, prompt_hash, read_grade, read_vote
from pointsman.pool import Pool, Worker
from pointsman.upstream.body import Fields
from pointsman.upstream.direct import chat_fields
from pointsman.upstream.record import CallRecord
from pointsman.words import JudgeMode

Ask = Callable[[Worker, Fields], Awaitable[list[CallRecord]]]
"""Calls a worker (`pointsman.upstream.direct.Direct.ask`, or what pays for it first)."""

_FOR_A: dict[Vote, float] = {"A": 1.0, "B": 0.0, "tie": 0.5}


@dataclass(frozen=True)
class JudgeSpec:
    """Who judges, and how. The hash names the judge: another endpoint or prompt is another one."""

    worker: Worker
    mode: JudgeMode = "grade"
    max_tokens: int = 400

    @classmethod
    def of(cls, config: Config, pool: Pool) -> JudgeSpec | None:
        """The configured judge, None where there is none."""
        section = config.judge
        if section is None:
            return None
        return cls(pool.by_name[section.worker], section.mode, section.max_tokens)

    @cached_property
    def hash(self) -> str:
        return content_hash([self.worker.endpoint_hash, self.mode, prompt_hash(self.mode), self.max_tokens])


@dataclass(frozen=True)
class Judged:
    """`score` in [0, 1] in judge units; None where a reply could not be read. `votes` are of a comparison."""

    score: float | None
    records: list[CallRecord]
    votes: tuple[Vote | None, ...] = field(default=())

    @property
    def consistent(self) -> bool:
        """Whether both orders of a comparison said the same."""
        if len(self.votes) != 2 or None in self.votes:
            return False
        first, second = self.votes
        return (first, second) in (("A", "B"), ("B", "A"), ("tie", "tie"))


class Judge:
    """Asks the judging worker."""

    def __init__(self, spec: JudgeSpec, ask: Ask) -> None:
        self.spec = spec
        self._ask = ask

    async def grade(self, request: str, answer: str) -> Judged:
        """How good one answer is."""
        records = await self._put(filled("grade", request=request, answer=answer))
        reply = _reply(records)
        return Judged(None if reply is None else read_grade(reply), records)

    async def compare(self, request: str, first: str, second: str) -> Judged:
        """The score is `first`'s against `second`: the mean of its two votes, 1 where both orders prefer it."""
        forth = await self._put(filled("pairwise", request=request, a=first, b=second))
        back = await self._put(filled("pairwise", request=request, a=second, b=first))
        votes = tuple(None if (reply := _reply(records)) is None else read_vote(reply) for records in (forth, back))
        there, again = votes
        if there is None or again is None:
            return Judged(None, [*forth, *back], votes)
        return Judged((_FOR_A[there] + 1 - _FOR_A[again]) / 2, [*forth, *back], votes)

    async def _put(self, prompt: str) -> list[CallRecord]:
        content = {"messages": [{"role": "user", "content": prompt}], "max_tokens": self.spec.max_tokens}
        return await self._ask(self.spec.worker, chat_fields(content))


def _reply(records: list[CallRecord]) -> str | None:
    """The judge's text, None where no call brought one."""
    if not records or records[-1].status != "ok":
        return None
    return records[-1].seen.completion
