"""Everything that one team's request needs before it runs: its pattern, its engine, its limits, what it may spend."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from harness.engine.acts import Policy
from harness.engine.configured import limits_of, policy_of
from harness.engine.deciders import ChainDeciders, Deciders
from harness.engine.engine import CLIENT_LEFT, Ended, Engine
from harness.engine.exchange import results_in
from harness.engine.learned import LearnedDeciders
from harness.engine.limits import Limits
from harness.engine.log import JournalLog
from harness.engine.request import Message, Request, plain
from harness.engine.state import State as RunState
from harness.engine.upstream_workers import UpstreamWorkers
from harness.gateway.access import Caller, Headers
from harness.gateway.decide import ask_of, consents, ineligible, needs_of
from harness.gateway.episodes import Episode
from harness.gateway.fields import decoded
from harness.gateway.generation import Generation
from harness.gateway.request import ChatRequest
from harness.gateway.rows import episode_row, request_row
from harness.gateway.teams import forecast
from harness.gateway.teams.choice import Drawn
from harness.gateway.teams.names import patterns_of
from harness.gateway.teams.rows import TeamRows
from harness.routing.eligibility import Eligibility, eligible
from pointsman.budgets import FREE, Reservation
from pointsman.config.model import PatternConfig
from pointsman.errors import RequestError
from pointsman.journal.lines import TableRow
from pointsman.upstream.attempts import Limits as CallLimits
from pointsman.words import Origin
from pointsman.words import Surface as SurfaceName

if TYPE_CHECKING:
    from harness.gateway.state import State


@dataclass
class Team:
    """One request's run, ready to begin. `resumed` is the run that waited for its tool results, with the results."""

    name: str
    pattern: PatternConfig
    policy: Policy
    engine: Engine
    request: Request
    limits: Limits
    rows: TeamRows
    reservation: Reservation
    drawn: Drawn | None
    resumed: Resumed | None
    unit: float
    left: Ended = CLIENT_LEFT

    @property
    def propensity(self) -> float:
        return self.drawn.root["propensity"] if self.drawn is not None else 1.0

    @property
    def router(self) -> str:
        return self.drawn.router if self.drawn is not None else "none"


@dataclass(frozen=True)
class Resumed:
    state: RunState
    results: Mapping[str, str]
    extra: Sequence[Message]


class Asked(NamedTuple):
    """A request that patterns answer. `ids` are the root decision's and the request's; `began` is perf_counter's."""

    caller: Caller
    request: ChatRequest
    episode: Episode
    generation: Generation
    names: tuple[str, ...]
    ids: tuple[str, str]
    body: bytes
    received_at: datetime
    began: float
    headers: Headers = []  # noqa: RUF012 - never changed

    @property
    def stored(self) -> bool:
        return self.generation.config.log.store_text and self.request.store


async def open_team(state: State, asked: Asked, surface: SurfaceName) -> Team:
    """Raises `RequestError` where nobody may answer, or nothing may be spent."""
    caller, request, generation, names = asked.caller, asked.request, asked.generation, asked.names
    refuse_what_no_team_gives(request)
    seats = eligible_now(state, request, generation)
    if not seats().workers:
        raise ineligible(seats().reasons)
    waiting = await state.teams.waiting(caller, request, generation)
    drawn: Drawn | None = None
    if waiting is None and len(names) > 1:
        drawn = await state.teams.draw(names, generation, request, caller)
    name = waiting.name if waiting is not None else drawn.name if drawn is not None else names[0]
    pattern = patterns_of(generation.config)[name]
    reservation = await _reserve(state, caller, request, pattern, seats())
    opening = opening_rows(state, asked, surface)
    rows = TeamRows(state.recent, state.redactor, generation.pool, asked.ids[0], opening, stored=asked.stored)
    log = JournalLog(state.journal, rows.clean, rows.seen, opening)
    engine_asked = engine_request(request, caller, asked.episode, asked.ids, state.rng.getrandbits(53))
    team = Team(
        name=name,
        pattern=pattern,
        policy=policy_of(name, pattern),
        engine=Engine(
            generation.pool,
            UpstreamWorkers(state.attempts, _call_limits(request, generation)),
            _deciders(state, caller, request, generation, pattern),
            log,
            seats,
            state.teams.memory,
            left=lambda: team.left,
        ),
        request=engine_asked,
        limits=_limits(pattern, request, generation, reservation, asked.began),
        rows=rows,
        reservation=reservation,
        drawn=drawn,
        resumed=_resumed(waiting, engine_asked),
        unit=forecast.unit(request.prompt_tokens, request.output_tokens, seats().workers),
    )
    return team


def opening_rows(state: State, asked: Asked, surface: SurfaceName) -> list[TableRow]:
    """The request's row, and its episode's where that is new."""
    caller, episode, redactor = asked.caller, asked.episode, state.redactor
    body = redactor.json(asked.body) if asked.stored else None
    row = request_row(
        asked.ids[1], caller, asked.received_at,
        episode_id=episode.id, request=asked.request, body=body, redactor=redactor,
    )  # fmt: skip
    rows: list[TableRow] = [("request", {**row, "surface": surface})]
    return rows if episode.known else [episode_row(episode, asked.received_at, caller, redactor), *rows]


def refuse_what_no_team_gives(request: ChatRequest) -> None:
    """Raises a 400 for what only one worker's own reply can hold."""
    wanted = {"n": request.several, "functions": request.functions, "logprobs": request.logprobs}
    for name, asked in wanted.items():
        if asked:
            hint = "use tools" if name == "functions" else "ask a worker by its name"
            raise RequestError(f"{name}: a team of workers does not give it; {hint}", param=name, code="unsupported")


def eligible_now(state: State, request: ChatRequest, generation: Generation) -> Callable[[], Eligibility]:
    """Who may be chosen at this moment: health changes while a tree runs."""
    needs = needs_of(request, generation)
    return lambda: eligible(generation.pool, needs, state.breaker.healthy, state.breaker.down)


def engine_request(
    request: ChatRequest,
    caller: Caller,
    episode: Episode,
    ids: tuple[str, str],
    seed: int,
    origin: Origin = "traffic",
) -> Request:
    fields = {name: decoded(request.fields, name) for name in request.fields}
    return Request(
        id=ids[1],
        project_id=caller.project_id,
        episode_id=episode.id,
        root_id=ids[0],
        messages=plain(fields.pop("messages")),
        ask=ask_of(request),
        fields=plain(fields),
        origin=origin,
        seed=seed,
        output_tokens=request.output_tokens,
        store=request.store,
    )


async def _reserve(
    state: State, caller: Caller, request: ChatRequest, pattern: PatternConfig, seats: Eligibility
) -> Reservation:
    """What the run may cost at most; where that is not to be had, what it takes at least. It is held to either."""
    budgets = state.ledger.budgets_of(caller.project_id, caller.key_id)
    if not budgets:
        return FREE
    given = (request.prompt_tokens, request.output_tokens)
    each = request.prompt_tokens + (request.output_tokens or forecast.OUTPUT_GUESS)
    least, most = forecast.shape_of(pattern).calls
    try:
        return await state.ledger.ensure(budgets, forecast.at_most(pattern, *given, seats.workers), most * each)
    except RequestError:
        return await state.ledger.ensure(budgets, forecast.at_least(pattern, *given, seats.workers), least * each)


def _limits(
    pattern: PatternConfig, request: ChatRequest, generation: Generation, reservation: Reservation, began: float
) -> Limits:
    total, hints = generation.config.timeouts.total, request.hints
    seconds = min(hints.deadline or total, total) - (time.perf_counter() - began)
    amounts = [hints.budget, reservation.estimate if reservation is not FREE else None]
    money = min((amount for amount in amounts if amount is not None), default=None)
    return limits_of(pattern, money=money, now=asyncio.get_running_loop().time(), seconds=seconds)


def _call_limits(request: ChatRequest, generation: Generation) -> CallLimits:
    return replace(generation.limits, attempts=1) if request.hints.disable_fallbacks else generation.limits


def _deciders(
    state: State, caller: Caller, request: ChatRequest, generation: Generation, pattern: PatternConfig
) -> Deciders:
    asked = state.teams.orchestrator(generation)
    if asked is not None:
        asked = replace(asked, roles=pattern.role_choice == "router")
    epsilon = generation.config.exploration.epsilon if consents(request, caller) else 0.0
    deciders = ChainDeciders(generation.serving(caller.project_id).chain, epsilon=epsilon, orchestrator=asked)
    learned, section = state.teams.conductor(generation), generation.config.conductor
    if learned is None or section is None:
        return deciders
    return LearnedDeciders(deciders, learned, section.form, pattern.max_steps)


def _resumed(waiting: RunState | None, asked: Request) -> Resumed | None:
    if waiting is None:
        return None
    results, extra = results_in(asked.messages, set(waiting.tool_call_ids()))
    return Resumed(waiting, results, extra)
