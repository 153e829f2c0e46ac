"""A request of any surface that asks a worker: the one place that knows the order of things.

    identify → read → parse → episode → decide → journal → call a worker (the journal syncs meanwhile)
    → synced → first byte → the rest → outcome

A decision is in the journal, on disk, before the first byte of its answer; every decision gets
exactly one outcome, whatever ends the request. What the client's API calls things is its surface's part:
here everything is a chat completion.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from harness.gateway.access import Caller, header, require
from harness.gateway.cache import CachedAnswer
from harness.gateway.cached import answer_from_cache, key_of
from harness.gateway.decide import Decision, decide
from harness.gateway.exchange import Exchange
from harness.gateway.reading import read_body, when_left
from harness.gateway.repeats import HEADER as IDEMPOTENCY
from harness.gateway.repeats import run_once
from harness.gateway.request import ChatRequest
from harness.gateway.responses import Headers, Receive, Send, from_upstream, send_error, unlogged
from harness.gateway.rows import decision_row, episode_row, outcome_row, rejected_decision_row, request_row
from harness.gateway.spending import reserve
from harness.gateway.state import State
from harness.gateway.surfaces.base import Surface
from harness.gateway.teams.exchange import serve_team
from harness.gateway.teams.names import asked_for
from harness.gateway.teams.opening import Asked
from pointsman.errors import RequestError, StoreError, UpstreamError
from pointsman.ids import new_id
from pointsman.journal.lines import TableRow
from pointsman.pool import Worker
from pointsman.upstream.outgoing import Outgoing, chat_call, embeddings_call
from pointsman.words import OutcomeStatus

UNDECIDED = [
    (b"x-pointsman-episode-id", b"none"),
    (b"x-pointsman-worker", b"none"),
    (b"x-pointsman-router", b"none"),
    (b"x-pointsman-pattern", b"none"),
    (b"x-pointsman-propensity", b"0"),
]
"""The headers of a request that was refused before anything could be decided."""


class Chat:
    """One surface's route, a plain ASGI callable."""

    def __init__(self, state: State, surface: Surface) -> None:
        self.state = state
        self.surface = surface

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        state = self.state
        headers = scope["headers"]
        try:
            caller = state.callers.identify(headers, scope.get("client"), state.directory, has_body=True)
            require(caller, "serve")
            self._admit()
            body = await read_body(receive, headers, state.generation.config.gateway.max_body_bytes)
        except RequestError as error:
            state.metrics.refused(error.code or error.type)
            await self._refuse(send, error)
            return
        if body is None:
            return  # the client left before it had said anything
        state.in_flight += 1
        try:
            key = header(headers, IDEMPOTENCY)
            if key is None:
                await self._serve(caller, body, headers, receive, send, began)
            else:
                await run_once(
                    state, caller, key, scope["path"], body, send,
                    lambda out: self._serve(caller, body, headers, receive, out, began),
                )  # fmt: skip
        except RequestError as error:
            await self._refuse(send, error)
        finally:
            state.in_flight -= 1

    def _admit(self) -> None:
        """Raises where no new work is taken: too much in flight, or nowhere to log it."""
        state = self.state
        if state.in_flight >= state.generation.config.gateway.max_in_flight:
            raise RequestError(
                "too many requests are under way here",
                status=429,
                type="rate_limit_error",
                code="too_many_in_flight",
                retry_after=1,
            )
        try:
            state.journal.check_room()
        except StoreError as error:
            raise unlogged(error) from error
        if state.generation.config.log.mode == "strict" and not state.database_up:
            raise unlogged(StoreError('Postgres is away, and [log] mode is "strict"'))

    async def _serve(
        self,
        caller: Caller,
        body: bytes,
        headers: list[tuple[bytes, bytes]],
        receive: Receive,
        send: Send,
        began: float,
    ) -> None:
        state = self.state
        received_at = datetime.now(UTC)
        ids = (new_id(), new_id())
        generation = state.generation
        try:
            request, voice = self.surface.read(body, headers, ids[0], received_at)
            names = asked_for(request, generation)
            cache_key = key_of(request, caller, generation) if voice is None and not names else None
            if cache_key is not None and (known := state.cache.get(cache_key)) is not None:
                await self._answer_again(caller, request, known, ids, received_at, headers, send)
                return
            episode = await state.episodes.find(caller, request.conversation, request.hints.episode_id)
            if names:
                asked = Asked(caller, request, episode, generation, names, ids, body, received_at, began, headers)
                await serve_team(state, asked, self.surface, voice, receive, send)
                return
            decision = await decide(
                request, caller, episode, generation, state.breaker, state.rng, ids=ids, arms=state.arms
            )
            reservation = await reserve(state.ledger, caller, request, decision)
        except RequestError as error:
            await self._reject(error, caller, ids, received_at, headers, send)
            return
        exchange = Exchange(state, caller, request, decision, began, self.surface, voice, reservation)
        try:
            exchange.begin(self._opening(caller, request, decision, body, received_at))
        except StoreError as error:
            reservation.release()
            await self._refuse(send, unlogged(error))
            return
        exchange.cache_key = cache_key
        if state.tracing is not None:
            exchange.trace = state.tracing.begin(ids[0], headers)
        await self._answer(exchange, receive, send)

    async def _answer_again(
        self,
        caller: Caller,
        request: ChatRequest,
        known: CachedAnswer,
        ids: tuple[str, str],
        received_at: datetime,
        headers: Headers,
        send: Send,
    ) -> None:
        try:
            await answer_from_cache(self.state, caller, request, known, ids, received_at, send)
            self._trace_undecided(ids[0], "ok", received_at, 200, headers)
        except StoreError as error:
            await self._refuse(send, unlogged(error))

    async def _answer(self, exchange: Exchange, receive: Receive, send: Send) -> None:
        """Calls a worker and relays its answer, while watching for the client to leave."""
        state = self.state
        task = asyncio.current_task()
        assert task is not None
        left = False

        def leave() -> None:
            nonlocal left
            left = True
            if not exchange.ended:
                task.cancel()

        unwatch = when_left(receive, leave)
        try:
            await self._call(exchange)
            await state.journal.synced(exchange.ticket)
            await exchange.relay(send)
        except UpstreamError as fault:
            await exchange.refuse(from_upstream(fault), _status_of(fault), send, reason=fault.fault)
        except StoreError as error:
            await exchange.refuse(unlogged(error), "rejected", send, reason="journal")
        except asyncio.CancelledError:
            if not left:
                await exchange.stopped(send)
                raise
            task.uncancel()
            exchange.client_left()
        finally:
            # Only a fault of ours leaves an exchange open here; even then its decision gets an outcome.
            exchange.end("upstream_error", reason="a fault in the gateway")
            exchange.close()
            unwatch()

    async def _call(self, exchange: Exchange) -> None:
        state, request, decision, trace = self.state, exchange.request, exchange.decision, exchange.trace

        def outgoing(worker: Worker) -> Outgoing:
            made = _outgoing(request, worker)
            return made if trace is None else trace.passed_on(made, len(exchange.records) + 1)

        once, limits = request.hints.disable_fallbacks, decision.generation.limits
        candidates = decision.candidates(fallbacks=not (once or request.embeddings))
        exchange.answer = await state.attempts.answer(
            candidates,
            outgoing,
            replace(limits, attempts=1) if once else limits,
            exchange.records,
            stream=request.stream,
            deadline=exchange.deadline,
        )

    def _opening(
        self, caller: Caller, request: ChatRequest, decision: Decision, body: bytes, received_at: datetime
    ) -> list[TableRow]:
        state = self.state
        stored = decision.generation.config.log.store_text and request.store
        row = request_row(
            decision.request_id,
            caller,
            received_at,
            episode_id=decision.episode.id,
            request=request,
            body=state.redactor.json(body) if stored else None,
            redactor=state.redactor,
        )
        row["surface"] = self.surface.name
        if request.embeddings:
            row["learn"] = False
        rows: list[TableRow] = [
            ("request", row),
            ("decision", decision_row(decision, caller, state.redactor, stored=stored)),
        ]
        if not decision.episode.known:
            rows.insert(0, episode_row(decision.episode, decision.decided_at, caller, state.redactor))
        return rows

    async def _reject(
        self,
        error: RequestError,
        caller: Caller,
        ids: tuple[str, str],
        received_at: datetime,
        headers: Headers,
        send: Send,
    ) -> None:
        """A request that could not be decided is a decision too: logged, with the outcome `rejected`."""
        state = self.state
        state.metrics.ended("rejected", "none")
        reason = state.redactor.text(error.message[:500])
        rows: list[TableRow] = [
            ("request", {**request_row(ids[1], caller, received_at), "surface": self.surface.name}),
            ("decision", rejected_decision_row(ids[0], ids[1], caller, received_at)),
            ("outcome", outcome_row(ids[0], caller, "rejected", reason=reason, http_status=error.status)),
        ]
        try:
            state.journal.append(rows)
            await state.journal.synced()
        except StoreError as fault:
            await self._refuse(send, unlogged(fault))
            return
        self._trace_undecided(ids[0], "rejected", received_at, error.status, headers)
        await self._refuse(send, error, [(b"x-pointsman-decision-id", ids[0].encode()), *UNDECIDED])

    def _trace_undecided(
        self, decision_id: str, status: OutcomeStatus, received_at: datetime, http_status: int, headers: Headers
    ) -> None:
        if (tracing := self.state.tracing) is not None:
            tracing.begin(decision_id, headers).undecided(self.surface.name, status, received_at, http_status)

    async def _refuse(self, send: Send, error: RequestError, headers: Headers | None = None) -> None:
        closing = [(b"connection", b"close")] if error.status == 408 else []
        await send_error(send, error, [*closing, *(headers or [])], self.surface.error_body(error))


def _outgoing(request: ChatRequest, worker: Worker) -> Outgoing:
    if request.embeddings:
        return embeddings_call(request.fields, worker)
    has_history = request.conversation.has_history
    return chat_call(request.fields, worker, stream=request.stream, has_history=has_history)


def _status_of(fault: UpstreamError) -> OutcomeStatus:
    if fault.fault == "timeout":
        return "timeout"
    return "rejected" if fault.fault in ("bad_request", "context_exceeded") else "upstream_error"
