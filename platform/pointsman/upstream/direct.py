"""Calls to a named worker outside of the gateway: probes, audits, judges. One worker, no fallback.

Also what every caller of workers needs to know of their addresses: which one, with which headers.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from pointsman.config import Config
from pointsman.errors import UpstreamError
from pointsman.extras import require_extras, uses_litellm
from pointsman.pool import Endpoint, Worker
from pointsman.upstream.attempts import Attempts, Limits
from pointsman.upstream.body import Fields
from pointsman.upstream.breaker import Breaker
from pointsman.upstream.outgoing import chat_call
from pointsman.upstream.pooled import PooledTransport
from pointsman.upstream.record import CallRecord
from pointsman.upstream.transport import Transport
from pointsman.upstream.usage import CHARS_PER_TOKEN

Secret = Callable[[str | None], str | None]
PATIENCE = 60.0
"""Seconds of a Retry-After that background work waits for, whatever requests of clients do."""
_NEVER = 1_000_000


def choose_endpoint(worker: Worker) -> Endpoint:
    """Load balancing among a worker's addresses, by weight. Not a decision."""
    if len(worker.endpoints) == 1:
        return worker.endpoints[0]
    weights = [endpoint.weight for endpoint in worker.endpoints]
    return random.choices(worker.endpoints, weights)[0]


def worker_headers(worker: Worker, key: str | None) -> dict[str, str]:
    """What goes with every call to a worker, its key included: this never leaves `upstream`."""
    headers = {"content-type": "application/json"}
    if key:
        name = worker.quirks.auth_header.lower()
        headers[name] = f"Bearer {key}" if name == "authorization" else key
    return headers


class Direct:
    """Asks workers. Opened in a running event loop, closed at its end:

    async with Direct(config, settings.secret) as direct:
        records = await direct.ask(worker, fields)
    """

    def __init__(self, config: Config, secret: Secret, *, transport: Transport | None = None) -> None:
        self._config = config
        self._secret = secret
        self._given = transport
        self._attempts: Attempts

    async def __aenter__(self) -> Direct:
        config = self._config
        require_extras(config)
        # No breaker: whoever calls decides when a worker has failed too often for this run.
        breaker = Breaker(_NEVER, 1.0, time.monotonic)
        transport = self._given or PooledTransport()
        self._attempts = Attempts(transport, breaker, self._headers, choose_endpoint)
        if uses_litellm(config):
            from pointsman.upstream.litellm_transport import LitellmTransport

            self._attempts.others["litellm"] = LitellmTransport()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._attempts.transport.close()
        for other in self._attempts.others.values():
            await other.close()

    async def ask(self, worker: Worker, fields: Fields) -> list[CallRecord]:
        """The calls that it took, usage settled: the last one's `status` is `ok` where there is an answer.

        Never raises `UpstreamError`: what went wrong stands on the records. There is none where the worker's API has
        no word for the request.
        """
        records: list[CallRecord] = []
        times, retries = self._config.timeouts, self._config.retries
        limits = Limits(times.connect, times.first_token, times.gap, retries.attempts, PATIENCE, retries.backoff)
        deadline = asyncio.get_running_loop().time() + times.total
        with suppress(UpstreamError):  # it is on the record
            await self._attempts.answer(
                [worker],
                lambda chosen: chat_call(fields, chosen, stream=False),
                limits,
                records,
                stream=False,
                deadline=deadline,
            )
        for record in records:
            record.settle_usage(prompt_tokens(fields))
        return records

    def _headers(self, worker: Worker, endpoint: Endpoint) -> dict[str, str]:
        return worker_headers(worker, self._secret(endpoint.api_key_env))


def chat_fields(content: Mapping[str, Any]) -> dict[str, msgspec.Raw]:
    """A request of ours in the form that goes to workers: top-level fields as raw JSON."""
    return {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in content.items()}


def prompt_tokens(fields: Fields) -> int:
    """An estimate from the bytes of what a worker reads."""
    size = sum(memoryview(fields[name]).nbytes for name in ("messages", "tools", "response_format") if name in fields)
    return size // CHARS_PER_TOKEN
