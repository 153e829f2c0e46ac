"""One decision: mask, forced?, scores from the chain, then the draw, in the order that keeps propensities exact."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec

from harness.gateway.access import Caller
from harness.gateway.canary import Arms
from harness.gateway.choose import Choice, Chosen, choose
from harness.gateway.episodes import Episode
from harness.gateway.generation import Generation
from harness.gateway.request import ChatRequest
from harness.gateway.shadow import Beside, usages_of
from harness.gateway.versions import Served
from harness.routing.base import Ask, RouterUsage
from harness.routing.chain import Decided
from harness.routing.eligibility import Eligibility, Needs
from harness.routing.exploration import Draw, forced
from pointsman.errors import RequestError
from pointsman.pool import Worker
from pointsman.upstream.breaker import Breaker
from pointsman.words import Origin

MODEL = "pointsman"
MIN_VERSION = 8  # characters of a version id that a pinned name must give


class Decision(msgspec.Struct, frozen=True):
    """What was decided for a request, with all that the log needs. `worker` is the intended arm."""

    id: str
    request_id: str
    generation: Generation
    episode: Episode
    eligibility: Eligibility
    draw: Draw
    worker: Worker
    decided: Decided | None
    decided_at: datetime
    origin: Origin
    flags: tuple[str, ...]
    audit_rate: float | None = None
    audited: bool = False
    beside: Beside | None = None
    picks: dict[str, Any] | None = None
    gate_id: str | None = None

    @property
    def propensity(self) -> float:
        return self.draw.probabilities[self.draw.chosen]

    @property
    def router(self) -> str:
        """Kind and version of the router that scored, for the response header; `none` where it was forced."""
        if self.decided is None:
            return "none"
        version = self.decided.router.version
        return f"{version.kind}@{version.id}"

    @property
    def router_cost(self) -> Decimal | None:
        """USD of all routers that were asked, the failed ones included; None where one is unknown."""
        total = Decimal(0)
        for usage in self.usages:
            if usage.cost is None and (usage.input_tokens or usage.output_tokens):
                return None
            total += usage.cost or 0
        return total

    @property
    def usages(self) -> list[RouterUsage]:
        """Of all routers that were asked, candidates and shadows included."""
        if self.beside is not None:
            return self.beside.usages
        return [] if self.decided is None else usages_of(self.decided)

    def candidates(self, *, fallbacks: bool) -> list[Worker]:
        """The intended worker, then the other eligible ones by score: who answers if it cannot."""
        if not fallbacks or self.draw.forced == "direct":
            return [self.worker]
        scores = self.decided.scored.scores if self.decided else {}
        others = [worker for worker in self.eligibility.workers if worker is not self.worker]
        return [self.worker, *sorted(others, key=lambda worker: -scores.get(worker.name, 0.0))]


async def decide(
    request: ChatRequest,
    caller: Caller,
    episode: Episode,
    generation: Generation,
    breaker: Breaker,
    rng: random.Random,
    *,
    ids: tuple[str, str],
    origin: Origin = "traffic",
    arms: Arms | None = None,
) -> Decision:
    """Decides. `ids` are the decision's and the request's. Raises `RequestError` where no worker may answer.

    Without `arms` no gate and no shadow takes part: what serves decides alone.
    """
    pool = generation.pool
    direct, served = _asked_for(request.model, caller, generation)
    needs = needs_of(request, generation)
    fit = generation.masks.of(needs, breaker)
    flags = ["health_lifted"] if fit.health_lifted else []
    chosen = Chosen()
    if direct is not None:
        if (reason := fit.reasons[direct.name]) not in (None, "unhealthy"):
            raise ineligible({direct.name: reason})
        drawn = forced(direct.name, "direct")
    elif not fit.workers:
        raise ineligible(fit.reasons)
    else:
        sticky = episode.worker if request.conversation.in_tool_loop else None
        stays = sticky is not None and fit.reasons.get(sticky, "gone") is None
        if sticky is not None and not stays:
            flags.append("switched_in_tool_loop")
        if request.embeddings:
            drawn = forced(fit.workers[0].name, "only_one")
        elif sticky is not None and stays:
            drawn = forced(sticky, "sticky")
        elif len(fit.workers) == 1:
            drawn = forced(fit.workers[0].name, "only_one")
        else:
            consent = consents(request, caller)
            chosen = await choose(
                served if consent and arms is not None else Served(served.chain, dial=served.dial),
                Choice(ask_of(request), fit.workers, caller.secret, episode),
                generation.config.exploration.epsilon if consent else 0.0,
                arms,
                rng,
            )
            flags += chosen.flags
            drawn = chosen.drawn
    audit_rate = _audit_rate(request, caller, drawn, generation, origin)
    return Decision(
        id=ids[0],
        request_id=ids[1],
        generation=generation,
        episode=episode,
        eligibility=fit,
        draw=drawn,
        worker=pool.by_name[drawn.chosen],
        decided=chosen.decided,
        decided_at=datetime.now(UTC),
        origin=origin,
        flags=tuple(flags),
        audit_rate=audit_rate,
        audited=audit_rate is not None and rng.random() < audit_rate,
        beside=chosen.beside,
        picks=chosen.picks,
        gate_id=chosen.gate_id,
    )


def _asked_for(model: str, caller: Caller, generation: Generation) -> tuple[Worker | None, Served]:
    """The worker that a request names, or None and what decides. 404 for a model that is not there."""
    if model == MODEL:
        return None, generation.serving(caller.project_id)
    if (worker := generation.pool.by_name.get(model)) is not None:
        return worker, generation.by_file
    name, _, version = model.partition("@")
    if name == MODEL and version:
        found = [chain for known, chain in generation.pinned.items() if known.startswith(version)]
        if len(found) == 1 and len(version) >= MIN_VERSION:
            return None, Served(found[0])
        message = f"router version {version!r} does not serve now; GET /v1/models lists those that do"
    else:
        message = f"model {model!r} does not exist here; use {MODEL!r} or a worker's name (GET /v1/models)"
    raise RequestError(message, status=404, code="model_not_found", param="model")


def needs_of(request: ChatRequest, generation: Generation) -> Needs:
    hints, names = request.hints, generation.pool.by_name
    for field, wanted in (("allowed_workers", hints.allowed_workers), ("excluded_workers", hints.excluded_workers)):
        if unknown := [name for name in wanted or () if name not in names]:
            raise RequestError(
                f"hint {field}: {unknown[0]!r} is no worker, expected some of {list(names)}", param=field
            )
    conversation = request.conversation
    return Needs(
        tools=request.tools,
        images=conversation.images > 0,
        audio=conversation.audio,
        json_schema=request.json_schema,
        logprobs=request.logprobs,
        several=request.several,
        functions=request.functions,
        embeddings=request.embeddings,
        prompt_tokens=request.prompt_tokens,
        output_tokens=request.output_tokens,
        tags=frozenset(hints.required_tags or ()),
        allowed=frozenset(hints.allowed_workers) if hints.allowed_workers is not None else None,
        excluded=frozenset(hints.excluded_workers or ()),
        budget=hints.budget,
    )


def ask_of(request: ChatRequest) -> Ask:
    conversation = request.conversation
    return Ask(
        text=conversation.ask,
        context=conversation.context,
        tags=frozenset(request.hints.tags or ()),
        images=conversation.images,
        has_tools=request.tools,
    )


def consents(request: ChatRequest, caller: Caller) -> bool:
    """Whether key and request consent to being learned from: else no ε, no gate, no shadow."""
    return caller.explore and caller.learn and request.store


def _audit_rate(
    request: ChatRequest, caller: Caller, drawn: Draw, generation: Generation, origin: Origin
) -> float | None:
    """With what probability all workers will be asked this request in the background; None where they may not be."""
    config = generation.config
    may = caller.learn and request.store and config.log.store_text and drawn.forced is None and origin == "traffic"
    return config.audit.rate if may and config.audit.rate else None


def ineligible(reasons: dict[str, str | None]) -> RequestError:
    why = ", ".join(f"{name}: {reason}" for name, reason in reasons.items())
    message = f"no worker may answer this request ({why})"
    if "context_window" in reasons.values():
        # The code by which clients know that they must send less.
        return RequestError(message, code="context_length_exceeded", param="messages")
    return RequestError(message, code="no_eligible_worker")
