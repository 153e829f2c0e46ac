"""One generation: everything that one reading of the configuration gives, built whole before it serves.

A reload builds the next generation beside the serving one; requests that run keep the one they began
with. What a generation declares (workers, endpoints, cards, prices, routers) is written to the log by
content hash, so that a decision can name what it saw.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import entry_points

from harness.gateway.versions import Served, Versions
from harness.routing.base import Router
from harness.routing.chain import Chain
from harness.routing.default import DefaultRouter
from harness.routing.lm import chat_lm
from harness.routing.masks import Masks
from harness.routing.prompted import PromptedRouter
from harness.routing.rule import RuleRouter
from harness.routing.template import default_template
from pointsman.config import Config, Settings
from pointsman.config.load import config_hash
from pointsman.ids import content_id
from pointsman.journal.lines import TableRow
from pointsman.pool import Endpoint, Pool, Price, Worker
from pointsman.promotion.plan import Plan
from pointsman.upstream.attempts import Limits
from pointsman.upstream.direct import worker_headers
from pointsman.upstream.transport import Transport
from pointsman.words import RouterKind


@dataclass(frozen=True)
class Generation:
    """Immutable. `pinned` has, by router version, the chain that begins with it; `chain` is the file's.

    `served` says by project what decides; a project that is not there is served by the file (`serving`). `notes`
    are what `plan` names and this generation cannot serve. `headers` are a worker's per endpoint address, keys
    included: they never leave `upstream`.
    """

    number: int
    config: Config
    hash: str
    pool: Pool
    chain: Chain
    pinned: Mapping[str, Chain]
    limits: Limits
    headers: Mapping[tuple[str, str], dict[str, str]] = field(repr=False)
    by_file: Served
    served: Mapping[str, Served] = field(default_factory=dict)
    plan: Plan = field(default_factory=Plan)
    notes: tuple[str, ...] = ()

    @cached_property
    def masks(self) -> Masks:
        return Masks(self.pool)

    def serving(self, project: str) -> Served:
        return self.served.get(project, self.by_file)

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
                        "state": "candidate" if version.kind == "harness" and self.overruled else "serving",
                        "created_at": now,
                    },
                )
            )
        return rows

    @property
    def overruled(self) -> bool:
        """Whether a promoted version serves every project that has one, so that the file's is a candidate only."""
        promoted = [self.served[project] for project, standing in self.plan.projects.items() if standing.promoted]
        file = self.chain.routers[0]
        return bool(promoted) and all(one.chain.routers[0] is not file for one in promoted)


def build_generation(
    config: Config,
    settings: Settings,
    transport: Transport,
    previous: Generation | None = None,
    plan: Plan | None = None,
) -> Generation:
    """The generation of `config` and `plan`. Raises `UserError` where something the file names cannot be had."""
    pool = Pool.of(config)
    times, retries = config.timeouts, config.retries
    routers = _routers(config, settings, pool, transport, previous)
    versions = Versions(config, pool, routers, time.monotonic, plan or Plan())
    # A router keeps what it has learned of its LLM, such as whether it gives log-probabilities.
    same = previous is not None and previous.config == config
    versions.build(settings, transport, _first_routers(previous) if previous is not None and same else {})
    chain = Chain(routers, time.monotonic)
    return Generation(
        number=previous.number + 1 if previous else 1,
        config=config,
        hash=config_hash(config),
        pool=pool,
        chain=chain,
        pinned=versions.pinned(),
        by_file=Served(chain, shadows=versions.shadows(chain)),
        served=versions.served(),
        plan=versions.plan,
        notes=tuple(versions.notes),
        limits=Limits(
            times.connect,
            times.first_token,
            times.gap,
            retries.attempts,
            retries.max_retry_after,
            retries.backoff,
        ),
        headers={
            (worker.name, endpoint.base_url): worker_headers(worker, settings.secret(endpoint.api_key_env))
            for worker in pool.workers
            for endpoint in worker.endpoints
        },
    )


def _first_routers(generation: Generation) -> dict[str, Router]:
    return {version: chain.routers[0] for version, chain in generation.pinned.items()}


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
        elif kind not in ("harness", "rule", "default"):
            router = _plugged(kind, config, settings, before.get(kind))
        if router is not None:
            routers.append(router)
    routers.append(DefaultRouter(config.router.default, _parent(before.get("default"))))
    return routers


def _plugged(kind: RouterKind, config: Config, settings: Settings, before: Router | None) -> Router | None:
    """A router of the entry-point group `pointsman.routers`; None where none is installed or configured."""
    for entry in entry_points(group="pointsman.routers", name=kind):
        router: Router | None = entry.load()(config, settings, _parent(before))
        if router is not None and before is not None and router.version.id == before.version.id:
            return before
        return router
    return None


def _prompted(
    config: Config, settings: Settings, pool: Pool, transport: Transport, before: Router | None
) -> PromptedRouter:
    section = config.router
    assert section.model is not None
    assert section.base_url is not None
    connect = min(config.timeouts.connect, section.deadline)
    ask_router = chat_lm(transport, section.base_url, settings.secret(section.api_key_env), connect)

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
