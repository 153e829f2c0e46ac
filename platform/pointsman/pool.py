"""The pool: workers at their versions, frozen, as one generation of the configuration gave them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property

from pointsman.config.model import Config, PriceConfig, QuirksConfig, WorkerConfig
from pointsman.hashing import content_hash

NO_ADDRESS = "litellm:"
"""In place of an endpoint's address, where LiteLLM's SDK knows it."""


@dataclass(frozen=True)
class Price:
    """USD per million tokens; `cached_input` is the input price where the provider has no other."""

    input: Decimal
    output: Decimal
    cached_input: Decimal

    @classmethod
    def of(cls, config: PriceConfig | None) -> Price | None:
        if config is None:
            return None
        cached = config.input if config.cached_input is None else config.cached_input
        return cls(config.input, config.output, cached)


@dataclass(frozen=True)
class Endpoint:
    """One address behind a worker. The choice among a worker's endpoints is load balancing."""

    base_url: str
    api_key_env: str | None = None
    weight: float = 1.0


@dataclass(frozen=True)
class Worker:
    """An LLM that can be chosen, at the versions of one generation."""

    name: str
    card: str
    model: str
    endpoints: tuple[Endpoint, ...]
    price: Price | None = None
    context_window: int | None = None
    max_output_tokens: int | None = None
    capabilities: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    quirks: QuirksConfig = field(default_factory=QuirksConfig)

    @classmethod
    def of(cls, config: WorkerConfig) -> Worker:
        endpoints = tuple(Endpoint(e.base_url, e.api_key_env, e.weight) for e in config.endpoints)
        if not endpoints:
            endpoints = (Endpoint(config.base_url or NO_ADDRESS, config.api_key_env),)
        return cls(
            name=config.name,
            card=config.description,
            model=config.model,
            endpoints=endpoints,
            price=Price.of(config.price),
            context_window=config.context_window,
            max_output_tokens=config.max_output_tokens,
            capabilities=frozenset(config.capabilities),
            tags=frozenset(config.tags),
            quirks=config.quirks,
        )

    @cached_property
    def endpoint_hash(self) -> str:
        """Of provider model, addresses and parameters: a change starts a new arm, another name does not."""
        return content_hash(self.endpoint_content)

    @cached_property
    def endpoint_content(self) -> dict[str, object]:
        return {
            "model": self.model,
            "base_urls": sorted(endpoint.base_url for endpoint in self.endpoints),
            "context_window": self.context_window,
            "max_output_tokens": self.max_output_tokens,
            "capabilities": sorted(self.capabilities),
            "quirks": self.quirks.model_dump(exclude_defaults=True),
        }

    @cached_property
    def card_hash(self) -> str:
        """Of the description alone: only routers see it."""
        return content_hash({"worker": self.name, "card": self.card})

    @cached_property
    def price_hash(self) -> str | None:
        if self.price is None:
            return None
        price = self.price
        return content_hash([self.name, str(price.input), str(price.output), str(price.cached_input)])


@dataclass(frozen=True)
class Pool:
    """The workers that may be chosen, in the configuration's order."""

    workers: tuple[Worker, ...]

    @classmethod
    def of(cls, config: Config) -> Pool:
        return cls(tuple(Worker.of(worker) for worker in config.workers))

    @cached_property
    def by_name(self) -> dict[str, Worker]:
        return {worker.name: worker for worker in self.workers}

    @cached_property
    def content(self) -> dict[str, dict[str, str | None]]:
        return {
            worker.name: {
                "endpoint": worker.endpoint_hash,
                "card": worker.card_hash,
                "price": worker.price_hash,
            }
            for worker in self.workers
        }

    @cached_property
    def hash(self) -> str:
        """Of every worker's three hashes: the snapshot that a decision names."""
        return content_hash(self.content)

    @cached_property
    def epoch(self) -> str:
        """Of the endpoints alone: while it stays, a worker of a name is the same worker."""
        return epoch_of(self.content)

    @cached_property
    def cards_hash(self) -> str:
        """Of the cards alone, by worker."""
        return content_hash({worker.name: worker.card_hash for worker in self.workers})

    def named(self, names: Iterable[str]) -> tuple[Worker, ...]:
        """The workers of these names, in the pool's order."""
        wanted = set(names)
        return tuple(worker for worker in self.workers if worker.name in wanted)


def epoch_of(content: Mapping[str, Mapping[str, str | None]]) -> str:
    """The epoch of a pool by its snapshot's content."""
    return content_hash({worker: hashes["endpoint"] for worker, hashes in content.items()})
