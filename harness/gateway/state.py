"""What one gateway process holds while it serves, and the background work that keeps it fresh."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
import time
from collections import OrderedDict
from contextlib import suppress

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from harness.gateway.cache import ResponseCache
from harness.gateway.episodes import Episodes
from harness.gateway.generation import Generation, build_generation, choose_endpoint
from harness.gateway.metrics import Metrics
from harness.gateway.recent import Recent
from harness.gateway.redact import Redactor
from pointsman.budgets import Ledger, Store
from pointsman.config import Config, Settings, load_config
from pointsman.database.engine import make_engine
from pointsman.errors import ConfigError, UserError
from pointsman.idempotency import New, keep, sweep
from pointsman.identity import Directory, read_directory
from pointsman.ids import new_id
from pointsman.journal import Journal
from pointsman.journal.folder import journal_root
from pointsman.pool import Endpoint, Worker
from pointsman.queries import database_state
from pointsman.queries.episodes import newest_episode
from pointsman.upstream.attempts import Attempts
from pointsman.upstream.breaker import Breaker
from pointsman.upstream.transport import AiohttpTransport, Transport

REFRESH_SECONDS = 1.0
LOOKUP_SECONDS = 0.25
LATENCY_WEIGHT = 0.1
CLAIMS_EVERY = 5  # rounds of refreshing
SWEEP_EVERY = 3_600

log = logging.getLogger("pointsman.gateway")


class State:
    """Opened in the serving event loop (`open`), closed at its end (`close`)."""

    def __init__(self, settings: Settings, config: Config, database_url: str) -> None:
        self.settings = settings
        self.engine: Engine = make_engine(database_url, pool_size=4, application="pointsman-gateway")
        self.metrics = Metrics()
        self.recent = Recent()
        self.directory: Directory | None = Directory.saved(settings.home)
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
        self._config = config
        self._tasks: list[asyncio.Task[None]] = []
        self.transport: Transport
        self.generation: Generation
        self.journal: Journal
        self.attempts: Attempts
        self.redactor = Redactor(config.log.redact)

    async def open(self) -> None:
        """Opens journal and transport, builds the first generation, and starts the background work."""
        log_config = self._config.log
        self.transport = AiohttpTransport()
        self.journal = Journal(journal_root(self.settings, self._config), max_bytes=log_config.max_bytes)
        self._serve(build_generation(self._config, self.settings, self.transport))
        self.attempts = Attempts(self.transport, self.breaker, self._headers, choose_endpoint)
        await self.refresh()
        self._tasks.append(asyncio.create_task(self._keep_fresh()))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self.journal.close()
        await self.ledger.close()
        await self.transport.close()
        self.engine.dispose()

    def reload(self) -> Generation:
        """Serves the configuration file as it is now. On any fault the old generation goes on."""
        config = load_config(self.settings.config_file)
        generation = build_generation(config, self.settings, self.transport, self.generation)
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

    async def refresh(self) -> None:
        """Keys from Postgres, and the journal's depth from disk. Never raises for either being away."""
        try:
            self.journal.measure()
            directory, _ = await asyncio.gather(asyncio.to_thread(read_directory, self.engine), self.ledger.refresh())
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
            if directory != self.directory:
                self.directory = directory
                try:
                    directory.save(self.settings.home)
                except OSError as error:
                    log.error("the directory of keys cannot be kept on disk (%s)", error.strerror)
        self._show()

    def note_latency(self, worker: str, milliseconds: float) -> None:
        """A moving mean of each worker's latency, for what `/v1/route` foretells."""
        known = self.latencies.get(worker, milliseconds)
        self.latencies[worker] = known + LATENCY_WEIGHT * (milliseconds - known)

    def _serve(self, generation: Generation) -> None:
        self.journal.append(generation.rows())
        self.generation = generation
        self.metrics.generation.set(generation.number)

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
        metrics.database_up.set(self.database_up)
        metrics.in_flight.set(self.in_flight)
        metrics.open_breakers.set(len(self.breaker.open_workers()))

    async def _keep_fresh(self) -> None:
        rounds = 0
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            await self.refresh()
            rounds += 1
            if not self.database_up:
                continue
            with suppress(SQLAlchemyError):
                if self.claims and rounds % CLAIMS_EVERY == 0:
                    await asyncio.to_thread(keep, self.engine, frozenset(self.claims))
                if rounds % SWEEP_EVERY == 1:
                    await asyncio.to_thread(sweep, self.engine)
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


def _cache(config: Config) -> ResponseCache:
    """An empty one: what a new configuration says of it holds from the start."""
    return ResponseCache(ttl=config.cache.ttl, max_bytes=config.cache.max_bytes, clock=time.monotonic)
