"""One generation: everything that one reading of the configuration gives, built whole before it serves.

A reload builds the next generation beside the serving one; requests that run keep the one they began
with. What a generation declares (workers, endpoints, cards, prices, routers) is written to the log by
content hash, so that a decision can name what it saw.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec

from harness.routing.base import Router
from harness.routing.chain import Chain
from harness.routing.default import DefaultRouter
from harness.routing.prompted import PromptedRouter
from harness.routing.rule import RuleRouter
from harness.routing.template import default_template
from pointsman.config import Config, Settings
from pointsman.config.load import config_hash
from pointsman.ids import content_id
from pointsman.journal.lines import TableRow
from pointsman.pool import Endpoint, Pool, Price, Worker
from pointsman.upstream.attempts import Limits
from pointsman.upstream.outgoing import COMPLETIONS
from pointsman.upstream.transport import Transport


@dataclass(frozen=True)
class Generation:
    """Immutable. `pinned` has, by router version, the chain that begins with it.

    `headers` are a worker's per endpoint address, keys included: they never leave `upstream`.
    """

    number: int
    config: Config
    hash: str
    pool: Pool
    chain: Chain
    pinned: Mapping[str, Chain]
    limits: Limits
    headers: Mapping[tuple[str, str], dict[str, str]] = field(repr=False)

    def header_of(self, worker: Worker, endpoint: Endpoint) -> dict[str, str]:
        return self.headers[worker.name, endpoint.base_url]

    def rows(self) -> list[TableRow]:
        """What this generation declares, as rows keyed by content."""
        now = datetime.now(UTC)
        rows: list[TableRow] = []
        for worker in self.pool.workers:
            rows += _worker_rows(worker, now)
        rows.append(("pool_snapshot", {"hash": self.pool.hash, "content": self.pool.content, "created_at": now}))
        for router in self.chain.routers:
            version = router.version
            rows.append(
                (
                    "router_version",
                    {
                        "id": version.id,
                        "kind": version.kind,
                        "parent_id": version.parent_id,
                        "artifact_hash": version.artifact_hash,
                        "config": dict(version.config),
                        "state": "serving",
                        "created_at": now,
                    },
                )
            )
        return rows


def build_generation(
    config: Config, settings: Settings, transport: Transport, previous: Generation | None = None
) -> Generation:
    """The generation of `config`. Raises `UserError` where something it names cannot be had."""
    pool = Pool.of(config)
    times, retries = config.timeouts, config.retries
    routers = _routers(config, settings, pool, transport, previous)
    return Generation(
        number=previous.number + 1 if previous else 1,
        config=config,
        hash=config_hash(config),
        pool=pool,
        chain=Chain(routers, time.monotonic),
        pinned={router.version.id: Chain(routers[n:], time.monotonic) for n, router in enumerate(routers)},
        limits=Limits(
            times.connect,
            times.first_token,
            times.gap,
            retries.attempts,
            retries.max_retry_after,
            retries.backoff,
        ),
        headers={
            (worker.name, endpoint.base_url): _headers(worker, settings.secret(endpoint.api_key_env))
            for worker in pool.workers
            for endpoint in worker.endpoints
        },
    )


def choose_endpoint(worker: Worker) -> Endpoint:
    """Load balancing among a worker's addresses, by weight. Not a decision."""
    if len(worker.endpoints) == 1:
        return worker.endpoints[0]
    weights = [endpoint.weight for endpoint in worker.endpoints]
    return random.choices(worker.endpoints, weights)[0]


def _headers(worker: Worker, key: str | None) -> dict[str, str]:
    headers = {"content-type": "application/json"}
    if key:
        name = worker.quirks.auth_header.lower()
        headers[name] = f"Bearer {key}" if name == "authorization" else key
    return headers


def _routers(
    config: Config, settings: Settings, pool: Pool, transport: Transport, previous: Generation | None
) -> list[Router]:
    """The chain's routers that are present, the default router last whatever the file says."""
    before = {router.kind: router for router in previous.chain.routers} if previous else {}
    routers: list[Router] = []
    for kind in config.router.chain:
        router: Router | None = None
        if kind == "harness" and config.router.model is not None:
            router = _prompted(config, settings, pool, transport, before.get("harness"))
        elif kind == "rule" and config.router.rules:
            router = RuleRouter(config.router.rules, _parent(before.get("rule")))
        if router is not None:
            routers.append(router)
    routers.append(DefaultRouter(config.router.default, _parent(before.get("default"))))
    return routers


def _prompted(
    config: Config, settings: Settings, pool: Pool, transport: Transport, before: Router | None
) -> PromptedRouter:
    section = config.router
    assert section.model is not None
    assert section.base_url is not None
    url = section.base_url + COMPLETIONS
    headers = {"content-type": "application/json"}
    if key := settings.secret(section.api_key_env):
        headers["authorization"] = f"Bearer {key}"
    connect = min(config.timeouts.connect, section.deadline)

    async def ask_router(body: dict[str, Any]) -> dict[str, Any]:
        reply = await transport.post(url, headers, msgspec.json.encode(body), connect)
        try:
            value = msgspec.json.decode(await reply.read())
        except msgspec.MsgspecError:
            return {}
        finally:
            reply.close()
        return value if isinstance(value, dict) else {}

    def make(parent: str | None) -> PromptedRouter:
        return PromptedRouter(
            default_template(),
            ask_router,
            model=section.model or "",
            cards={worker.name: worker.card for worker in pool.workers},
            deadline=section.deadline,
            instructions=section.instructions,
            scoring=section.scoring,
            price=Price.of(section.price),
            base_url=section.base_url,
            parent_id=parent,
        )

    router = make(_parent(before))
    # Nothing changed: the version keeps the parent it was first made from.
    if before is not None and before.version.id == router.version.id:
        return make(before.version.parent_id)
    return router


def _parent(before: Router | None) -> str | None:
    return before.version.id if before is not None else None


def _worker_rows(worker: Worker, now: datetime) -> list[TableRow]:
    rows: list[TableRow] = [
        ("worker", {"id": content_id("worker", worker.name), "name": worker.name, "created_at": now}),
        (
            "worker_endpoint",
            {
                "hash": worker.endpoint_hash,
                "worker": worker.name,
                "model": worker.model,
                "content": worker.endpoint_content,
                "created_at": now,
            },
        ),
        (
            "card",
            {
                "hash": worker.card_hash,
                "worker": worker.name,
                "text": worker.card,
                "source": "file",
                "created_at": now,
            },
        ),
    ]
    if worker.price is not None:
        price = worker.price
        rows.append(
            (
                "price",
                {
                    "hash": worker.price_hash,
                    "worker": worker.name,
                    "input": price.input,
                    "output": price.output,
                    "cached_input": price.cached_input,
                    "created_at": now,
                },
            )
        )
    return rows
