"""One team's request from its root decision to its one outcome: progress, the answer, and whoever leaves meanwhile.

A stream's head leaves with the first piece of the answer, so that what fails before it is a real HTTP status; earlier
only where the client asked for progress, or has waited so long that it needs a sign of life.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

from harness.engine.engine import CLIENT_LEFT
from harness.engine.events import CallEnded, CallStarted, Delta, Done, Event, Failed
from harness.gateway.reading import when_left
from harness.gateway.responses import (
    Headers,
    Receive,
    Send,
    error_event,
    from_upstream,
    send_error,
    send_events,
    send_json,
    start_events,
    unlogged,
)
from harness.gateway.stream import DONE_EVENT
from harness.gateway.surfaces.base import Surface, Teller, Voice
from harness.gateway.teams.forecast import Ran
from harness.gateway.teams.opening import Asked, Team, open_team
from harness.gateway.teams.telling import Telling
from harness.gateway.usage import with_null_usage
from pointsman.errors import RequestError, StoreError, UpstreamError

if TYPE_CHECKING:
    from harness.gateway.state import State

STOPPED = "the gateway stopped"


class TeamExchange:
    """Serves one `Team`."""

    def __init__(
        self,
        state: State,
        asked: Asked,
        team: Team,
        surface: Surface,
        voice: Voice | None,
    ) -> None:
        self.state = state
        self.asked = asked
        self.caller = asked.caller
        self.request = request = asked.request
        self.episode = asked.episode
        self.team = team
        self.surface = surface
        self._voice = voice
        self._teller: Teller | None = None
        self._began = asked.began
        self._telling = Telling(
            team.request.root_id, request.model, team.name, trace=request.hints.trace and voice is None
        )
        self._form = request.hints.progress if request.stream else None
        self._worker = "none"
        self._streaming = False
        self._status = 200
        self._done: Done | None = None

    async def serve(self, receive: Receive, send: Send) -> None:
        """Runs the tree and tells it. Ends with every call closed and everything logged, whatever happens."""
        team, rows = self.team, self.team.rows
        rows.overhead_ms = round((time.perf_counter() - self._began) * 1000, 3)
        self.state.metrics.overhead.observe(rows.overhead_ms / 1000)
        task = asyncio.current_task()
        assert task is not None
        team.left = ("upstream_error", STOPPED)
        gone = False

        def leave() -> None:
            nonlocal gone
            gone, team.left = True, CLIENT_LEFT
            if rows.outcome is None:
                task.cancel()

        unwatch = when_left(receive, leave)
        try:
            async with aclosing(self._events()) as events:
                async for event in events:
                    await self._take(event, send)
        except StoreError as error:
            await self._refuse(unlogged(error), send)
        except UpstreamError as fault:  # an answer that this surface cannot tell
            await self._refuse(from_upstream(fault), send)
        except TimeoutError:
            pass  # a client that takes nothing: the run is closed, the connection ends
        except asyncio.CancelledError:
            if not gone:
                await self._refuse(_stopping(), send)
                raise
            task.uncancel()
        finally:
            unwatch()
            self._settle()

    @property
    def headers(self) -> Headers:
        team = self.team
        return [
            (b"x-pointsman-decision-id", team.request.root_id.encode()),
            (b"x-pointsman-episode-id", self.episode.id.encode()),
            (b"x-pointsman-worker", self._worker.encode()),
            (b"x-pointsman-router", team.router.encode()),
            (b"x-pointsman-pattern", team.name.encode()),
            (b"x-pointsman-propensity", b"%.6g" % team.propensity),
        ]

    async def _events(self) -> AsyncGenerator[Event | None, None]:
        """The run's events; None for every silence in which a stream needs a sign of life."""
        team, request = self.team, self.request
        if team.resumed is not None:
            run = team.engine.resume(
                team.policy, team.resumed.state, team.request, team.resumed.results, team.limits,
                extra=team.resumed.extra, stream=request.stream,
            )  # fmt: skip
        else:
            root = team.drawn.root if team.drawn is not None else None
            run = team.engine.run(team.policy, team.request, team.limits, stream=request.stream, root=root)
        silence = self.state.generation.config.gateway.keep_alive if request.stream else None
        async with aclosing(run), aclosing(_with_silences(run, silence)) as told:
            async for event in told:
                yield event

    async def _take(self, event: Event | None, send: Send) -> None:
        match event:
            case None:
                await self._send(self.surface.keep_alive, send)
            case Delta():  # of a whole answer too, just before its end
                if self.request.stream:
                    await self._chunk(self._telling.piece(event.text), send)
            case Done():
                self._done = event
                self._worker = event.worker or self._worker
                await self._finish(event, send)
            case Failed():
                await self._refuse(_refusal(event), send)
            case _:
                if isinstance(event, CallStarted):
                    self._worker = event.worker
                if isinstance(event, CallEnded) and event.fault is None:
                    self.state.note_latency(event.worker, event.milliseconds)
                if self._form is not None and (said := self._telling.progress(event, self._form)):
                    await self._send(said, send)

    async def _finish(self, done: Done, send: Send) -> None:
        self._note_episode(done)
        if not self.request.stream:
            body = self._telling.whole(done)
            if self._voice is not None:
                body = self._voice.whole(body)
            await send_json(send, 200, body, self.headers)
            return
        for chunk in self._telling.last(done):
            await self._chunk(chunk, send)
        if self.request.wants_usage or self._voice is not None:
            await self._chunk(self._telling.used(done), send)
        await send_events(send, DONE_EVENT if self._teller is None else self._teller.finish(), more=False)

    async def _chunk(self, data: bytes, send: Send) -> None:
        if self._teller is None and self._voice is not None:
            self._teller = self._voice.stream()
        if self._teller is not None:
            told = self._teller.feed(data)
        else:
            told = b"data: " + data + b"\n\n"
            told = with_null_usage(told) if self.request.wants_usage else told
        if told or not self._streaming:
            await self._send(told, send)

    async def _send(self, told: bytes, send: Send) -> None:
        """Within the gap limit: a client that takes nothing for so long has left."""
        try:
            async with asyncio.timeout(self.state.generation.limits.gap):
                if not self._streaming:
                    self._streaming = True
                    await start_events(send, self.headers)
                await send_events(send, told)
        except TimeoutError:
            self.team.left = ("client_cancelled", "the client took no byte within the gap limit")
            raise

    async def _refuse(self, error: RequestError, send: Send) -> None:
        if not self._streaming:
            self._status = error.status
            await send_error(send, error, self.headers, self.surface.error_body(error))
            return
        if self._teller is None and self._voice is not None:
            self._teller = self._voice.stream()
        told = error_event(error) if self._teller is None else self._teller.fail(error)
        await send_events(send, told, more=False)

    def _note_episode(self, done: Done) -> None:
        ids = [str(call["id"]) for call in done.tool_calls]
        self.state.episodes.answered(self.caller, self.episode, done.worker or "none", ids)

    def _settle(self) -> None:
        """Once all is over: money, metrics, and what the pattern's next forecast learns of this run."""
        state, team, spent = self.state, self.team, self.team.rows.spent
        if spent.tokens:
            team.reservation.settle(spent.cost, spent.most, spent.tokens)
        else:
            team.reservation.release()
        seconds = time.perf_counter() - self._began
        outcome = team.rows.outcome
        status = outcome["status"] if outcome is not None else "rejected"
        state.metrics.ended(status, self._worker)
        state.metrics.calls += spent.calls
        state.metrics.latency.observe(seconds)
        if state.tracing is not None:
            trace = state.tracing.begin(team.request.root_id, self.asked.headers)
            trace.undecided(self.surface.name, status, self.asked.received_at, self._status)
        if self._done is not None and self._done.reason != "tool_calls" and team.resumed is None:
            units = float(spent.cost) / team.unit if spent.cost is not None and team.unit else None
            state.teams.tallies.note(team.name, Ran(spent.calls, units, seconds * 1000))


async def serve_team(
    state: State, asked: Asked, surface: Surface, voice: Voice | None, receive: Receive, send: Send
) -> None:
    """Raises `RequestError` where the request is refused before anything is decided."""
    team = await open_team(state, asked, surface.name)
    await TeamExchange(state, asked, team, surface, voice).serve(receive, send)


async def _with_silences(run: AsyncGenerator[Event, None], silence: float | None) -> AsyncGenerator[Event | None, None]:
    """The events of `run`, and a None after every `silence` seconds without one."""
    waiting: asyncio.Future[Event | None] | None = None
    try:
        while True:
            waiting = asyncio.ensure_future(_next(run))
            while not (await asyncio.wait({waiting}, timeout=silence))[0]:
                yield None
            event = waiting.result()
            if event is None:
                return
            yield event
    finally:
        if waiting is not None and not waiting.done():
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await waiting


async def _next(run: AsyncIterator[Event]) -> Event | None:
    return await anext(run, None)


def _refusal(failed: Failed) -> RequestError:
    """A limit of the client's own is its 400; what workers could not do is what it is for a single request."""
    if failed.status != "rejected" or failed.fault.fault != "server":
        return from_upstream(failed.fault)
    return RequestError(f"no answer within the limits of this request ({failed.reason})", code="limit_reached")


def _stopping() -> RequestError:
    return RequestError(STOPPED, status=503, type="server_error", code="stopping", retry_after=1)
