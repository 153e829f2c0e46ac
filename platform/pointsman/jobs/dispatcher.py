"""The dispatcher process: `python -m pointsman.jobs.dispatcher`. Looks whenever a job is announced, and every second.

It sends wake-ups (`reconciler`), takes jobs from workers that fell silent, and starts what the clock
says (`schedules`). Any number of dispatchers may run. While Postgres or the broker is away it waits.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import psycopg
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from pointsman.config import Settings, load_config
from pointsman.config.model import ScheduleConfig
from pointsman.database.engine import make_engine, psycopg_url
from pointsman.database.open import configured_url
from pointsman.drift.pulse import DriftPulse
from pointsman.errors import BrokerAway
from pointsman.flywheel.pulse import FlywheelPulse
from pointsman.identity import DEFAULT_PROJECT_ID
from pointsman.jobs.broker import Wire, broker_url
from pointsman.jobs.celery_app import make_app
from pointsman.jobs.health import BEAT_SECONDS, Beat
from pointsman.jobs.reconciler import reconcile
from pointsman.jobs.schedules import run_due
from pointsman.jobs.store import CHANNEL
from pointsman.logs import configure_logging
from pointsman.probing.pulse import AuditPulse
from pointsman.processes import when_parent_ends
from pointsman.promotion.pulse import Pulse
from pointsman.rewards.job import RewardPulse
from pointsman.rollups.job import RollupPulse

GATHER_SECONDS = 0.02  # what is announced together is looked at together
AWAY_SECONDS = 1.0

log = logging.getLogger("pointsman.dispatcher")

# A missing table is among these: the schema is made by who starts us, which waits for Postgres too.
FOR_NOW = (psycopg.Error, SQLAlchemyError, BrokerAway, OSError)


class Beats(Protocol):
    """What starts jobs of its own accord: it is told the time at each look, and says nothing that matters here."""

    def beat(self, now: datetime) -> object: ...


class Dispatcher:
    """Looks, and between looks listens."""

    def __init__(
        self,
        engine: Engine,
        address: str,
        wire: Wire,
        schedules: Mapping[str, ScheduleConfig],
        beat: Beat,
        *,
        pulses: Sequence[Beats] = (),
    ) -> None:
        self._engine = engine
        self._address = psycopg_url(address)
        self._wire = wire
        self._schedules = schedules
        self._beat = beat
        self._listener: psycopg.Connection[Any] | None = None
        self._stop = threading.Event()
        self._trouble: str | None = None
        self._gates = Pulse(engine)
        self._rollups = RollupPulse(engine)
        self._pulses = pulses

    def stop(self, signum: int = 0, frame: FrameType | None = None) -> None:
        self._stop.set()

    def run(self) -> None:
        while not self._stop.is_set():
            try:
                self._listen()
                self._look()
                self._note(None)
                self._await()
            except FOR_NOW as error:
                self._close_listener()
                self._note(error)
                self._stop.wait(AWAY_SECONDS)
        self._close_listener()
        self._wire.close()
        self._engine.dispose()

    def _look(self) -> None:
        now = datetime.now(UTC)
        run_due(self._engine, self._schedules, now)
        self._gates.beat(now)
        self._rollups.beat(now)
        for pulse in self._pulses:
            pulse.beat(now)
        done = reconcile(self._engine, self._wire)
        if done.expired:
            log.warning("%d jobs were taken from workers that fell silent", done.expired)

    def _listen(self) -> None:
        if self._listener is None:
            self._listener = psycopg.connect(
                self._address, autocommit=True, connect_timeout=3, application_name="pointsman-dispatcher"
            )
            self._listener.execute(f"LISTEN {CHANNEL}")

    def _await(self) -> None:
        """Until something is announced, or a second has passed."""
        assert self._listener is not None
        until = time.monotonic() + BEAT_SECONDS
        while not self._stop.is_set() and time.monotonic() < until:
            if list(self._listener.notifies(timeout=0.2, stop_after=1)):
                self._stop.wait(GATHER_SECONDS)
                list(self._listener.notifies(timeout=0))
                return

    def _close_listener(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def _note(self, error: Exception | None) -> None:
        """Says once what is wrong, and once that it is over; never an error's text, which may quote a row."""
        trouble = None if error is None else _name(error)
        if trouble is not None and trouble != self._trouble:
            log.warning("%s; jobs wait", trouble)
        elif trouble is None and self._trouble is not None:
            log.info("jobs are dispatched again")
        self._trouble = trouble
        self._beat.say(trouble)


def _name(error: Exception) -> str:
    if isinstance(error, BrokerAway):
        return str(error)
    cause = error.orig if isinstance(error, DBAPIError) else error
    code = getattr(cause, "sqlstate", None)
    return f"Postgres does not answer ({type(cause).__name__}{f' {code}' if code else ''})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beat", type=Path, required=True, help="the file in which it says that it lives")
    arguments = parser.parse_args()
    os.umask(0o077)
    settings = Settings.read()
    config = load_config(settings.config_file)
    configure_logging(form=config.log.format)
    url = configured_url(settings, config)
    app = make_app(broker_url(settings, config), visibility_timeout=config.jobs.visibility_timeout)
    engine = make_engine(url, pool_size=2, application="pointsman-dispatcher")
    turning = FlywheelPulse(engine, DEFAULT_PROJECT_ID if config.flywheel.enabled else None)
    pulses = (RewardPulse(engine, config), AuditPulse(engine, config), DriftPulse(engine), turning)
    dispatcher = Dispatcher(engine, url, Wire(app), config.schedules, Beat(arguments.beat), pulses=pulses)
    signal.signal(signal.SIGTERM, dispatcher.stop)
    signal.signal(signal.SIGINT, dispatcher.stop)
    when_parent_ends(dispatcher.stop)
    dispatcher.run()


if __name__ == "__main__":
    main()
