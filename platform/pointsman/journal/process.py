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
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from pointsman.config import Config, Settings, load_config
from pointsman.database.engine import make_engine, psycopg_url
from pointsman.database.open import configured_url
from pointsman.errors import ConfigError
from pointsman.journal.folder import journal_root
from pointsman.journal.housekeeping import join_feedback, keep_house
from pointsman.journal.shipper import Shipper
from pointsman.logs import configure_logging

IDLE_SECONDS = 0.1
LONGEST_PAUSE = 2.0
LAST_SECONDS = 5.0
JOIN_EVERY = 1.0
HOUSEKEEPING_EVERY = 600.0

log = logging.getLogger("pointsman.shipper")

# A missing table is among these: the schema is made by `serve`, which waits for Postgres too.
FOR_NOW = (psycopg.Error, SQLAlchemyError, OSError)


class Loop:
    """Ships, keeps house, and waits out an absent Postgres."""

    def __init__(self, settings: Settings, config: Config) -> None:
        url = configured_url(settings, config)
        self._settings = settings
        self._retention = config.log.retention
        self._engine: Engine = make_engine(url, pool_size=1, application="pointsman-shipper")
        self._address = psycopg_url(url)
        self._root = journal_root(settings, config)
        self._shipper = Shipper(self._root, self._connect)
        self._stop = threading.Event()
        self._next_join = 0.0
        self._joined_at = -1  # rows shipped when feedback was last joined: only a new row can join some
        self._next_house = 0.0
        self._reload = False
        self._trouble: str | None = None

    def stop(self, signum: int = 0, frame: FrameType | None = None) -> None:
        self._stop.set()

    def reload(self, signum: int = 0, frame: FrameType | None = None) -> None:
        """For a signal: before the next round the configuration is read anew."""
        self._reload = True

    def run(self) -> None:
        pause = IDLE_SECONDS
        while not self._stop.is_set():
            try:
                moved = self._round()
            except FOR_NOW as error:
                self._note_trouble(error)
                pause = min(max(pause, IDLE_SECONDS) * 2, LONGEST_PAUSE)
            else:
                if self._trouble is not None:
                    log.info("shipping goes on")
                self._trouble = None
                pause = 0.0 if moved else IDLE_SECONDS
            self._stop.wait(pause)
        self._last_words()
        self._shipper.close()
        self._engine.dispose()

    def _round(self) -> int:
        if self._reload:
            self._reload = False
            self._read_retention()
        moved = self._shipper.ship()
        now = time.monotonic()
        if now >= self._next_join and self._shipper.shipped != self._joined_at:
            self._next_join = now + JOIN_EVERY
            shipped = self._shipper.shipped
            join_feedback(self._shipper.connection())
            self._joined_at = shipped
        if now >= self._next_house:
            connection, moment = self._shipper.connection(), datetime.now(UTC)
            keep_house(self._engine, connection, self._root, moment, self._retention, drained=not moved)
            self._next_house = now + HOUSEKEEPING_EVERY
        return moved

    def _read_retention(self) -> None:
        """`[log] retention` as the file has it now, in force at once; folder and database are those of the start."""
        try:
            self._retention = load_config(self._settings.config_file).log.retention
        except ConfigError as error:
            for problem in error.problems:
                log.error("not reloaded: %s", problem)
        else:
            self._next_house = 0.0

    def _last_words(self) -> None:
        until = time.monotonic() + LAST_SECONDS
        try:
            while time.monotonic() < until and self._shipper.ship():
                pass
        except FOR_NOW as error:
            self._note_trouble(error)

    def _note_trouble(self, error: Exception) -> None:
        """Says once what is wrong; never an error's text, which may quote a row."""
        cause = error.orig if isinstance(error, DBAPIError) else error
        trouble = f"{type(cause).__name__} {getattr(cause, 'sqlstate', None) or ''}".strip()
        if trouble != self._trouble:
            log.warning("Postgres does not take rows now (%s); the journal waits on disk", trouble)
        self._trouble = trouble

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
    os.umask(0o077)  # journal, cursors and directories are for this account alone
    # Until there is something to reload; who starts this process blocks it too.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    configure_logging()
    settings = Settings.read()
    config = load_config(settings.config_file)
    configure_logging(form=config.log.format)
    loop = Loop(settings, config)
    signal.signal(signal.SIGHUP, loop.reload)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})  # one that came meanwhile takes effect now
    signal.signal(signal.SIGTERM, loop.stop)
    signal.signal(signal.SIGINT, loop.stop)
    stop_with_parent(loop)
    loop.run()


if __name__ == "__main__":
    main()
