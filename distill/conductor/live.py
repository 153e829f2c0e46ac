"""Rollouts against the configured workers, and requests with verifiers from a file.

A tenth of the file's tasks, by their hash, is for looks at progress; training never sees it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from distill.conductor.rollouts import Item
from harness.engine.request import Message
from harness.engine.upstream_workers import UpstreamWorkers
from harness.engine.workers import CallResult, CallRow, Sink
from pointsman.config import Config
from pointsman.errors import UserError
from pointsman.extras import require_extras, uses_litellm
from pointsman.pool import Endpoint, Worker
from pointsman.probing.tasks import read_tasks
from pointsman.upstream.attempts import Attempts, Limits
from pointsman.upstream.breaker import Breaker
from pointsman.upstream.direct import PATIENCE, Secret, choose_endpoint, worker_headers
from pointsman.upstream.pooled import PooledTransport
from pointsman.words import CallPurpose

LOOKED_AT = 10
"""One task in so many is for validation."""
_NEVER = 1_000_000


@dataclass
class LiveWorkers:
    """Workers over HTTP, opened for each batch of rollouts: a connection belongs to the event loop that opened it."""

    config: Config
    secret: Secret
    _inner: UpstreamWorkers | None = field(default=None, init=False)
    _attempts: Attempts | None = field(default=None, init=False)

    async def __aenter__(self) -> LiveWorkers:
        require_extras(self.config)
        if uses_litellm(self.config):
            raise UserError("rollouts ask OpenAI-compatible workers only; leave the others out of the configuration")
        times, retries = self.config.timeouts, self.config.retries
        breaker = Breaker(_NEVER, 1.0, time.monotonic)
        self._attempts = Attempts(PooledTransport(), breaker, self._headers, choose_endpoint)
        limits = Limits(times.connect, times.first_token, times.gap, retries.attempts, PATIENCE, retries.backoff)
        self._inner = UpstreamWorkers(self._attempts, limits)
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._attempts is not None:
            await self._attempts.transport.close()
        self._inner = self._attempts = None

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
        """As `UpstreamWorkers`, which it is while it is open."""
        assert self._inner is not None, "opened by Scene.roll"
        return await self._inner.call(
            worker,
            messages,
            stream=stream,
            tools=tools,
            deadline=deadline,
            purpose=purpose,
            fields=fields,
            fallbacks=fallbacks,
            rows=rows,
        )

    def _headers(self, worker: Worker, endpoint: Endpoint) -> dict[str, str]:
        return worker_headers(worker, self.secret(endpoint.api_key_env))


def file_items(file: Path, names: Sequence[str], seed: int) -> tuple[list[Item], list[Item]]:
    """(training, validation) requests of a file of tasks, each with a random pool of two workers or more."""
    rng = Random(f"file/{seed}")
    parts: tuple[list[Item], list[Item]] = ([], [])
    for task in read_tasks(file):
        if len(task.messages) != 1:
            raise UserError(f"{file}: task {task.id}: expected a prompt or one user message, not a conversation")
        k = rng.randint(min(2, len(names)), len(names))
        offered = tuple(sorted(rng.sample(list(names), k)))
        item = Item(task.id, task.text, task.verifier, offered, rng.getrandbits(48), task.task or "")
        parts[int(task.hash[:8], 16) % LOOKED_AT == 0].append(item)
    if not parts[0] or not parts[1]:
        raise UserError(f"{file}: expected tasks enough for training and validation, some {4 * LOOKED_AT} or more")
    return parts
