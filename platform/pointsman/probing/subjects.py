"""What is asked of workers: one request, who is asked, how often, and under which ids it stands in the log.

Ids are functions of what is asked, never of when: a run that is started again finds its own rows and goes on.
A worker whose endpoint has changed is asked anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pointsman.hashing import content_hash
from pointsman.ids import id_at
from pointsman.pool import Worker
from pointsman.upstream.body import Fields

Asking = Literal["audit", "probe"]
"""Both an origin of decisions and a purpose of calls."""


@dataclass(frozen=True)
class Subject:
    """A full-information row to be. `moment` is the time in its ids; `request` its `request` row where it is new.

    `eligible` says of every worker of the pool why it is not asked. `rate` is with what probability the request
    was drawn (None: a task, which nobody drew).
    """

    key: str
    origin: Asking
    project_id: str
    moment: datetime
    request_id: str
    fields: Fields
    workers: tuple[Worker, ...]
    eligible: Mapping[str, str | None]
    repeats: int = 1
    verifier: Mapping[str, Any] | None = None
    request: Mapping[str, Any] | None = None
    episode_id: str | None = None
    parent_id: str | None = None
    rate: float | None = None

    @property
    def id(self) -> str:
        """The decision's."""
        return _made(self.moment, self.project_id, self.key, "decision")

    def cells(self) -> list[Cell]:
        """Everything that is asked."""
        return [Cell(self, worker, repeat) for repeat in range(self.repeats) for worker in self.workers]


@dataclass(frozen=True)
class Cell:
    """One worker, asked once."""

    subject: Subject
    worker: Worker
    repeat: int

    @property
    def id(self) -> str:
        """That of the call that brought the answer, and of its outcome."""
        subject, mine = self.subject, self.worker.endpoint_hash
        parts = [subject.project_id, subject.key, "call", mine, str(self.repeat)]
        if sum(worker.endpoint_hash == mine for worker in subject.workers) > 1:
            parts.append(self.worker.name)  # one model under several names: each is asked
        return _made(subject.moment, *parts)


def request_id(moment: datetime, project_id: str, key: str) -> str:
    """The id of a request that is made for a subject."""
    return _made(moment, project_id, key, "request")


def draws_repeat(key: str, share: float) -> bool:
    """Whether a subject is among the `share` that every worker answers twice. A function of its key alone."""
    return int(content_hash(["repeat", key])[:8], 16) < share * 16**8


def _made(moment: datetime, *parts: str) -> str:
    return id_at(moment, bytes.fromhex(content_hash(list(parts)))[:10])
