"""The shipper process: `python -m pointsman.journal.process`. Ships for as long as its parent lives.

At SIGTERM it ships what it still can within a few seconds; what is left waits on disk for the next
shipper.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from datetime import UTC, datetime
from types import FrameType
from typing import Any

import psycopg
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from pointsman.config import Config, Settings, load_config
from pointsman.database.engine import make_engine, psycopg_url
from pointsman.database.open import configured_url
from pointsman.journal.folder import journal_root
from pointsman.journal.housekeeping import drop_expired, join_feedback, keep_partitions, sweep_feedback
from pointsman.journal.shipper import Shipper
from pointsman.logs import configure_logging

IDLE_SECONDS = 0.1
LONGEST_PAUSE = 2.0
LAST_SECONDS = 5.0
JOIN_EVERY = 1.0
HOUSEKEEPING_EVERY = 600.0

log = logging.getLogger("pointsman.shipper")


class Loop:
    """Ships, keeps house, and waits out an absent Postgres."""

    def __init__(self, settings: Settings, config: Config) -> None:
        url = configured_url(settings, config)
        self._retention = config.log.retention
        self._engine: Engine = make_engine(url, pool_size=1, application="pointsman-shipper")
        self._address = psycopg_url(url)
        self._root = journal_root(settings, config)
        self._shipper = Shipper(self._root, self._connect)
        self._stop = threading.Event()
        self._next_join = 0.0
        self._next_house = 0.0
        self._away = False

    def stop(self, signum: int = 0, frame: FrameType | None = None) -> None:
        self._stop.set()

    def run(self) -> None:
        pause = IDLE_SECONDS
        while not self._stop.is_set():
            try:
                moved = self._round()
            except (psycopg.OperationalError, SQLAlchemyError) as error:
                self._note_away(error)
                pause = min(pause * 2, LONGEST_PAUSE)
            else:
                if self._away:
                    log.info("Postgres is back")
                self._away = False
                pause = 0.0 if moved else IDLE_SECONDS
            self._stop.wait(pause)
        self._last_words()
        self._shipper.close()
        self._engine.dispose()

    def _round(self) -> int:
        moved = self._shipper.ship()
        now = time.monotonic()
        if now >= self._next_join:
            self._next_join = now + JOIN_EVERY
            join_feedback(self._shipper.connection())
        if now >= self._next_house:
            self._next_house = now + HOUSEKEEPING_EVERY
            moment = datetime.now(UTC)
            keep_partitions(self._engine, moment)
            sweep_feedback(self._shipper.connection(), moment)
            drop_expired(self._engine, self._shipper.connection(), moment, self._retention)
        return moved

    def _last_words(self) -> None:
        until = time.monotonic() + LAST_SECONDS
        try:
            while time.monotonic() < until and self._shipper.ship():
                pass
        except (psycopg.OperationalError, SQLAlchemyError) as error:
            self._note_away(error)

    def _note_away(self, error: Exception) -> None:
        if not self._away:
            log.warning("Postgres is away (%s); the journal waits on disk", type(error).__name__)
        self._away = True

    def _connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(
            self._address,
            autocommit=True,
            connect_timeout=3,
            application_name="pointsman-shipper",
            options="-c timezone=UTC -c statement_timeout=60000",
        )


def stop_with_parent(loop: Loop) -> None:
    """Stops when the parent is gone: the pipe on standard input then ends."""

    def watch() -> None:
        while os.read(0, 1):
            pass
        loop.stop()

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    configure_logging()
    settings = Settings.read()
    loop = Loop(settings, load_config(settings.config_file))
    signal.signal(signal.SIGTERM, loop.stop)
    signal.signal(signal.SIGINT, loop.stop)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    stop_with_parent(loop)
    loop.run()


if __name__ == "__main__":
    main()
