"""What one gateway process holds while it serves, and the background work that keeps it fresh."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
import time
from collections import Counter, OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from harness.engine.postgres_memory import sweep as sweep_memory
from harness.gateway.access import Known
from harness.gateway.cache import ResponseCache
from harness.gateway.canary import Arms
from harness.gateway.episodes import Episodes
from harness.gateway.generation import Generation, build_generation
from harness.gateway.metrics import Metrics
from harness.gateway.notified import listen
from harness.gateway.recent import Recent
from harness.gateway.teams.shared import Teams
from pointsman.budgets import Ledger, Store
from pointsman.config import Config, Settings, load_config
from pointsman.database.engine import make_engine
from pointsman.errors import ConfigError, UserError
from pointsman.extras import require_extras, uses_litellm
from pointsman.idempotency import New, keep, sweep
from pointsman.identity import Directory, read_directory
from pointsman.ids import new_id
from pointsman.journal import Journal
from pointsman.journal.folder import journal_root
from pointsman.journal.rejected import Tally
from pointsman.pool import Endpoint, Worker
from pointsman.promotion.plan import Plan, read_plan
from pointsman.promotion.serving import CHANNEL
from pointsman.queries import database_state
from pointsman.queries.arms import arm_of_episode
from pointsman.queries.episodes import newest_episode
from pointsman.redaction import Redactor
from pointsman.upstream.attempts import Attempts
from pointsman.upstream.breaker import Breaker
from pointsman.upstream.direct import choose_endpoint
from pointsman.upstream.pooled import PooledTransport
from pointsman.upstream.transport import Transport
from pointsman.words import GateArm

if TYPE_CHECKING:
    from harness.gateway.tracing import Tracing

REFRESH_SECONDS = 1.0
LOOKUP_SECONDS = 0.25
LAST_SPANS_SECONDS = 2.0
LATENCY_WEIGHT = 0.1
CLAIMS_EVERY = 5  # rounds of refreshing
SWEEP_EVERY = 3_600
STRANGERS_EVERY = 0.2  # seconds between two readings of keys for the sake of unknown ones
PLAN_EVERY = 5  # a change is announced; this is for announcements that were missed

log = logging.getLogger("pointsman.gateway")


class State:
    """Opened in the serving event loop (`open`), closed at its end (`close`)."""

    def __init__(self, settings: Settings, config: Config, database_url: str) -> None:
        self.settings = settings
        self.engine: Engine = make_engine(database_url, pool_size=4, application="pointsman-gateway")
        self.metrics = Metrics()
        self.recent = Recent()
        self.directory: Directory | None = Directory.saved(settings.home)
        self.callers = Known()
        self.database_up = False
        self.rng = random.Random(config.exploration.seed)
        self.breaker = Breaker(config.breaker.failures, config.breaker.open_seconds, time.monotonic)
        self.episodes = Episodes(self._lookup_episode)
        self.latencies: OrderedDict[str, float] = OrderedDict()
        holder = f"{socket.gethostname()}:{os.getpid()}:{new_id()}"
        self.ledger = Ledger(Store(self.engine, holder), home=settings.home)
        self.claims: set[New] = set()
        self.cache = _cache(config)
        self.stopping = False
        self.in_flight = 0
        self.plan = Plan.saved(settings.home)
        self.alarms: list[dict[str, Any]] = []
        self.arms = Arms(self._lookup_arm)
        self._database_url = database_url
        self._planning = asyncio.Lock()
        self._reading_keys = asyncio.Lock()
        self._strangers = asyncio.Lock()
        self._keys_read = 0.0
        self._config = config
        self._tasks: list[asyncio.Task[None]] = []
        self.transport: Transport
        self.generation: Generation
        self.journal: Journal
        self.rejected: Tally
        self.attempts: Attempts
        self.redactor = Redactor(config.log.redact)
        self.tracing: Tracing | None = None
        self.teams = Teams(self)

    async def open(self) -> None:
        """Opens journal and transport, builds the first generation, and starts the background work."""
        log_config = self._config.log
        self.transport = PooledTransport()
        root = journal_root(self.settings, self._config)
        self.journal = Journal(root, max_bytes=log_config.max_bytes)
        self.rejected = Tally(root)
        self.attempts = Attempts(self.transport, self.breaker, self._headers, choose_endpoint)
        self._equip(self._config)
        self._serve(build_generation(self._config, self.settings, self.transport, plan=self.plan))
        await self.refresh()
        self._tasks.append(asyncio.create_task(self._keep_fresh()))
        self._tasks.append(asyncio.create_task(listen(self._database_url, CHANNEL, self.read_plan)))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self.journal.close()
        await self.ledger.close()
        await self.transport.close()
        for transport in self.attempts.others.values():
            await transport.close()
        if self.tracing is not None:
            await asyncio.to_thread(self.tracing.close, LAST_SPANS_SECONDS)
        self.engine.dispose()

    def reload(self) -> Generation:
        """Serves the configuration file as it is now. On any fault the old generation goes on."""
        config = load_config(self.settings.config_file)
        self._equip(config)
        generation = build_generation(config, self.settings, self.transport, self.generation, self.plan)
        self.redactor = Redactor(config.log.redact)
        self.cache = _cache(config)
        self._serve(generation)
        log.info("generation %d serves", generation.number)
        return generation

    def reload_or_log(self) -> None:
        """For a signal: what is wrong goes to the log, the old generation serves on."""
        try:
            self.reload()
        except ConfigError as error:
            for problem in error.problems:
                log.error("not reloaded: %s", problem)
        except UserError as error:
            log.error("not reloaded: %s", error)

    async def read_plan(self) -> None:
        """What the database says of routers; a new generation where that has changed. Never raises for its absence."""
        async with self._planning:
            try:
                plan, alarms = await asyncio.to_thread(read_plan, self.engine)
            except SQLAlchemyError:
                return
            self.alarms = alarms
            self.metrics.alarms = Counter(alarm["kind"] for alarm in alarms)
            if plan != self.plan:
                self._take(plan)

    async def refresh(self, *, plan: bool = True) -> None:
        """Keys and routers from Postgres, the journal's depth from disk. Never raises for either being away."""
        try:
            self.journal.measure()
            await asyncio.to_thread(self.rejected.read)
            await self._read_keys()
        except OSError as error:
            log.error("the data folder cannot be read (%s)", error.strerror)
        except SQLAlchemyError as error:
            if self.database_up:
                log.warning("Postgres is away (%s); decisions go to the journal", type(error).__name__)
            self.database_up = False
        else:
            if not self.database_up:
                log.info("Postgres answers")
            self.database_up = True
            if plan:
                await self.read_plan()
        self._show()

    async def read_keys_again(self) -> None:
        """For a key that is not known here: reads keys once more, whoever asks, at most so often that
        nobody who guesses keys can keep Postgres busy. Never raises for its absence."""
        asked = time.monotonic()
        async with self._strangers:
            if self._keys_read > asked or not self.database_up:
                return
            await asyncio.sleep(max(0.0, self._keys_read + STRANGERS_EVERY - time.monotonic()))
            with suppress(SQLAlchemyError, OSError):
                await self._read_keys()

    async def _read_keys(self) -> None:
        """Keys and their budgets from Postgres, in one go: no key serves before its budget is known."""
        async with self._reading_keys:
            began = time.monotonic()
            directory, _ = await asyncio.gather(asyncio.to_thread(read_directory, self.engine), self.ledger.refresh())
            self._keys_read = began
            if directory == self.directory:
                return
            self.directory = directory
            try:
                directory.save(self.settings.home)
            except OSError as error:
                log.error("the directory of keys cannot be kept on disk (%s)", error.strerror)

    def note_latency(self, worker: str, milliseconds: float) -> None:
        """A moving mean of each worker's latency, for what `/v1/route` foretells."""
        known = self.latencies.get(worker, milliseconds)
        self.latencies[worker] = known + LATENCY_WEIGHT * (milliseconds - known)

    def _take(self, plan: Plan) -> None:
        config = self.generation.config
        try:
            generation = build_generation(config, self.settings, self.transport, self.generation, plan)
        except UserError as error:
            log.error("what serves could not be changed: %s", error)
            return
        self.plan = plan
        self.cache = _cache(config)  # what another router answered is not this one's answer
        self._serve(generation)
        try:
            plan.save(self.settings.home)
        except OSError as error:
            log.error("what serves cannot be kept on disk (%s)", error.strerror)

    def _equip(self, config: Config) -> None:
        """The optional parts that a configuration asks for; without them their libraries are never imported.

        Importing takes seconds, in which this process answers nobody: at the start, or once at a reload.
        """
        require_extras(config, str(self.settings.config_file))
        if uses_litellm(config) and "litellm" not in self.attempts.others:
            from pointsman.upstream.litellm_transport import LitellmTransport

            self.attempts.others["litellm"] = LitellmTransport()
        before, wanted = self.tracing, config.tracing
        if before is not None and before.config == wanted:
            return
        if wanted.endpoint is not None:
            from harness.gateway.tracing import make_tracing

            self.tracing = make_tracing(wanted, self.settings.secret(wanted.headers_env))
        else:
            self.tracing = None
        if before is not None:
            before.close()

    def _serve(self, generation: Generation) -> None:
        self.journal.append(generation.rows())
        self.generation = generation
        self.metrics.generation.set(generation.number)
        for note in generation.notes:
            log.warning("%s", note)
        if generation.overruled and any(router.kind == "harness" for router in generation.chain.routers):
            log.warning("a promoted router serves: what the file says of the prompted router is a candidate only")

    def _headers(self, worker: Worker, endpoint: Endpoint) -> dict[str, str]:
        try:
            return self.generation.header_of(worker, endpoint)
        except KeyError:  # a request of an earlier generation retries at an address that is gone
            return {"content-type": "application/json"}

    def _show(self) -> None:
        metrics = self.metrics
        metrics.waiting_bytes.set(self.journal.waiting)
        metrics.waiting_lines.set(self.journal.waiting_lines)
        metrics.lost.set(self.journal.lost)
        metrics.rejected_rows.set(self.rejected.rows)
        metrics.damaged_lines.set(self.rejected.lines)
        metrics.database_up.set(self.database_up)
        metrics.in_flight.set(self.in_flight)
        metrics.open_breakers.set(len(self.breaker.open_workers()))

    async def _keep_fresh(self) -> None:
        rounds = 0
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            rounds += 1
            await self.refresh(plan=rounds % PLAN_EVERY == 0)
            if not self.database_up:
                continue
            with suppress(SQLAlchemyError):
                if self.claims and rounds % CLAIMS_EVERY == 0:
                    await asyncio.to_thread(keep, self.engine, frozenset(self.claims))
                if rounds % SWEEP_EVERY == 1:
                    await asyncio.to_thread(sweep, self.engine)
                    await asyncio.to_thread(sweep_memory, self.engine)
                if rounds % 60 == 1:
                    state = await asyncio.to_thread(database_state, self.engine)
                    self.metrics.default_rows.set(sum(state.default_rows.values()))

    async def _lookup_episode(self, project_id: str, fingerprint: str) -> tuple[str, str | None] | None:
        """An older conversation from Postgres, quickly or not at all."""
        if not self.database_up:
            return None
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                return await asyncio.to_thread(newest_episode, self.engine, project_id, fingerprint)
        except (SQLAlchemyError, TimeoutError):
            return None

    async def _lookup_arm(self, gate_id: str, episode_id: str) -> GateArm | None:
        """The arm that another gateway drew, quickly or not at all."""
        if not self.database_up:
            return None
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                return await asyncio.to_thread(arm_of_episode, self.engine, gate_id, episode_id)
        except (SQLAlchemyError, TimeoutError):
            return None


def _cache(config: Config) -> ResponseCache:
    """An empty one: what a new configuration says of it holds from the start."""
    return ResponseCache(ttl=config.cache.ttl, max_bytes=config.cache.max_bytes, clock=time.monotonic)
