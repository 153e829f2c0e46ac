"""Eligibility: which workers of the pool may be offered for a request, and why the others may not.

Masked before any router sees a card. A worker can do what its configuration declares: an empty list of
capabilities means none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import msgspec

from pointsman.pool import Pool, Price, Worker

UNHEALTHY = "unhealthy"
_NONE: frozenset[str] = frozenset()
_EMBEDDINGS = frozenset({"embeddings"})
"""A worker that declares this and nothing else is no chat model."""
_MILLION = Decimal(1_000_000)


class Needs(msgspec.Struct, frozen=True):
    """What a request asks of a worker.

    `prompt_tokens` is an estimate, `output_tokens` the most the client wants back (0: it did not say).
    `several` answers in one reply (`n`); `functions` are the chat API's old tools; `embeddings` and no chat.
    `allowed` None allows every worker. `budget` is the most this request may cost, in USD.
    """

    tools: bool = False
    images: bool = False
    audio: bool = False
    json_schema: bool = False
    logprobs: bool = False
    several: bool = False
    functions: bool = False
    embeddings: bool = False
    prompt_tokens: int = 0
    output_tokens: int = 0
    tags: frozenset[str] = _NONE
    allowed: frozenset[str] | None = None
    excluded: frozenset[str] = _NONE
    budget: Decimal | None = None

    @property
    def capabilities(self) -> tuple[str, ...]:
        """The capabilities that a worker must have declared."""
        named = (
            (self.tools, "tools"),
            (self.images, "images"),
            (self.audio, "audio"),
            (self.json_schema, "json_schema"),
            (self.logprobs, "logprobs"),
            (self.embeddings, "embeddings"),
        )
        return tuple(name for wanted, name in named if wanted)

    @property
    def beyond_anthropic(self) -> tuple[str, ...]:
        """What a worker that speaks Anthropic's API cannot give, whatever it declares."""
        named = (
            (self.several, "n"),
            (self.functions, "functions"),
            (self.audio, "audio"),
            (self.logprobs, "logprobs"),
            (self.embeddings, "embeddings"),
        )
        return tuple(name for wanted, name in named if wanted)


class Eligibility(msgspec.Struct, frozen=True):
    """For every worker of the pool, in its order: None, or why it may not be offered.

    Reasons: `not_allowed`, `excluded`, `no_<capability>`, `no_n` and `no_functions` (a worker that speaks
    Anthropic's API), `embeddings_only`, `tag:<tag>`, `context_window`, `budget`, `unhealthy`.
    `health_lifted`: every worker left was unhealthy, so health was set aside; a call that may fail is better
    than a refusal.
    """

    reasons: dict[str, str | None]
    health_lifted: bool = False
    workers: tuple[Worker, ...] = ()


def eligible(
    pool: Pool, needs: Needs, healthy: Callable[[str], bool], down: Callable[[str], bool] = lambda name: False
) -> Eligibility:
    """Who may answer: `workers` are those with no reason against them (none left: an empty tuple).

    Where nobody is `healthy`, those who only cool down after a 429 are asked before those who are `down`.
    """
    return with_health(mask(pool, needs), healthy, down)


def mask(pool: Pool, needs: Needs) -> Eligibility:
    """Who may answer for what they are, whatever their health."""
    wanted = needs.capabilities
    dearest = _dearest(pool) if needs.budget is not None else None
    reasons: dict[str, str | None] = {}
    fit: list[Worker] = []
    for worker in pool.workers:
        reason = _why_not(worker, needs, wanted, dearest)
        reasons[worker.name] = reason
        if reason is None:
            fit.append(worker)
    return Eligibility(reasons, False, tuple(fit))


def with_health(masked: Eligibility, healthy: Callable[[str], bool], down: Callable[[str], bool]) -> Eligibility:
    """The mask, and who of those left is not well."""
    fit = masked.workers
    well = tuple(worker for worker in fit if healthy(worker.name))
    if len(well) == len(fit):
        return masked
    reasons = dict(masked.reasons)
    if not well:
        asked = tuple(worker for worker in fit if not down(worker.name)) or fit
        reasons.update({worker.name: UNHEALTHY for worker in fit if worker not in asked})
        return Eligibility(reasons, True, asked)
    ill = {worker.name for worker in fit} - {worker.name for worker in well}
    reasons.update(dict.fromkeys(ill, UNHEALTHY))
    return Eligibility(reasons, False, well)


def _why_not(worker: Worker, needs: Needs, wanted: tuple[str, ...], dearest: Price | None) -> str | None:
    if needs.allowed is not None and worker.name not in needs.allowed:
        return "not_allowed"
    if worker.name in needs.excluded:
        return "excluded"
    for capability in wanted:
        if capability not in worker.capabilities:
            return f"no_{capability}"
    if worker.quirks.api == "anthropic" and (beyond := needs.beyond_anthropic):
        return f"no_{beyond[0]}"
    if worker.quirks.api == "litellm" and needs.embeddings:
        return "no_embeddings"
    if worker.capabilities == _EMBEDDINGS and not needs.embeddings:
        return "embeddings_only"
    if needs.tags and not needs.tags <= worker.tags:
        return f"tag:{min(needs.tags - worker.tags)}"
    # A list of inputs is bounded one by one, by the worker.
    if (
        worker.context_window is not None
        and not needs.embeddings
        and needs.prompt_tokens + output_of(worker, needs) > worker.context_window
    ):
        return "context_window"
    if needs.budget is not None and _cost(worker, needs, dearest) > needs.budget:
        return "budget"
    return None


def output_of(worker: Worker, needs: Needs) -> int:
    """Tokens that a worker may be asked to write."""
    # A client that asks for more than a worker can write gets what it can write.
    limit = worker.max_output_tokens
    return needs.output_tokens if limit is None else min(needs.output_tokens, limit)


def _cost(worker: Worker, needs: Needs, dearest: Price | None) -> Decimal:
    price = worker.price or dearest
    if price is None:
        return Decimal("Infinity")  # no price in the whole pool: nothing can be said to fit a budget
    return (needs.prompt_tokens * price.input + output_of(worker, needs) * price.output) / _MILLION


def _dearest(pool: Pool) -> Price | None:
    """The highest of each price in the pool: what a worker without a price is taken to cost."""
    prices = [worker.price for worker in pool.workers if worker.price is not None]
    if not prices:
        return None
    return Price(
        max(price.input for price in prices),
        max(price.output for price in prices),
        max(price.cached_input for price in prices),
    )
