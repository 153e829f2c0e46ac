"""What a router is: from an ask and the cards of the eligible workers to a score for each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Protocol

import msgspec

from harness.routing.exploration import Ranking
from pointsman.hashing import content_hash
from pointsman.ids import content_id
from pointsman.pool import Worker
from pointsman.words import ParseStatus, RouterKind


class Ask(msgspec.Struct, frozen=True):
    """A request as routers see it: the person's ask, and everything else apart.

    `text` is what the person asked last. `context` holds, as plain text and bounded, what surrounds
    it: system text, earlier turns, tool results, reminders of an agent's harness.
    """

    text: str
    context: str = ""
    tags: frozenset[str] = frozenset()
    images: int = 0
    has_tools: bool = False


class RouterUsage(msgspec.Struct, frozen=True):
    """What one routing cost: tokens and USD of the router LLM, NULL (None) where unknown."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: Decimal | None = None


NO_USAGE = RouterUsage()


class Scored(msgspec.Struct, frozen=True):
    """One router's word on one ask.

    `scores` has every worker that was offered, larger is better, on the router's own scale (log
    probabilities, 0 to 100, 0 or 1). `card_order` is the order in which the cards were shown.
    `flags` names what was unusual: `floored` (option mass missing from the top-k was floored),
    `pick_only` (no scores were given, only a pick), `ties`. `ranking` is theirs where the router has made it: it then
    answers for every worker's score being there and finite.
    """

    scores: Mapping[str, float]
    parse_status: ParseStatus = "not_parsed"
    raw_reply: str | None = None
    card_order: tuple[str, ...] = ()
    template_hash: str | None = None
    flags: tuple[str, ...] = ()
    usage: RouterUsage = NO_USAGE
    ranking: Ranking | None = None

    @classmethod
    def of_one(cls, chosen: str, workers: tuple[Worker, ...], flags: tuple[str, ...] = ()) -> Scored:
        """1 for one worker, 0 for the others."""
        scores = {worker.name: float(worker.name == chosen) for worker in workers}
        return cls(scores, flags=flags, ranking=Ranking.of(scores))


@dataclass(frozen=True)
class RouterVersion:
    """A router at one version: it owns the cards, instructions and template it serves with.

    `config` is everything that makes it what it is, as JSON; its hash is the artifact hash, and the
    id is a function of kind and hash, so that every gateway gives one version one id.
    """

    kind: RouterKind
    config: Mapping[str, Any]
    parent_id: str | None = None

    @cached_property
    def artifact_hash(self) -> str:
        return content_hash(self.config)

    @cached_property
    def id(self) -> str:
        return content_id("router_version", self.kind, self.artifact_hash)


class RouterFailed(Exception):
    """A router could not score: the next of the chain decides. `reason` is a short word for logs.

    `raw_reply` and `usage` are kept, so that a reply that could not be used is still on record.
    """

    def __init__(
        self,
        reason: str,
        *,
        parse_status: ParseStatus = "not_parsed",
        raw_reply: str | None = None,
        card_order: tuple[str, ...] = (),
        usage: RouterUsage | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.parse_status: ParseStatus = parse_status
        self.raw_reply = raw_reply
        self.card_order = card_order
        self.usage = usage or NO_USAGE


class Router(Protocol):
    """Scores the offered workers for an ask, within `deadline` seconds (held by the chain)."""

    kind: RouterKind
    version: RouterVersion
    deadline: float

    async def score(self, ask: Ask, workers: tuple[Worker, ...], seed: int) -> Scored:
        """Scores for all of `workers` (never empty); `seed` orders the options. Raises `RouterFailed`."""
        ...
