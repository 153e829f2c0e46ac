"""`pointsman serve`: the gateway processes and the shipper, started, watched and stopped together.

One listening socket is shared by all gateway processes, so a process that dies and is started again
never loses the port. A second signal to stop ends the children at once.
"""

from __future__ import annotations

import errno
import logging
import os
import signal
import socket
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import FrameType

from sqlalchemy.exc import OperationalError, SQLAlchemyError

from harness.gateway.access import is_loopback
from pointsman.config import Config, Settings, load_config
from pointsman.database.engine import make_engine
from pointsman.database.open import database_url
from pointsman.database.schema import migrate
from pointsman.errors import UserError
from pointsman.identity import ensure_admin_key, ensure_project, write_private
from pointsman.logs import configure_logging
from pointsman.processes import Child

GATEWAY = "harness.gateway.process"
SHIPPER = "pointsman.journal.process"
PID_FILE = "serve.pid"
LATE_SECONDS = 1.0
PORT_SECONDS = 2.0

log = logging.getLogger("pointsman.serve")


@dataclass
class Supervisor:
    """The children of one `serve`. Gateways stop first, then the shipper, which sends what they left."""

    settings: Settings
    config: Config
    gateways: list[Child] = field(default_factory=list)
    shipper: Child = field(default_factory=lambda: Child("shipper", [sys.executable, "-m", SHIPPER]))
    stopping: threading.Event = field(default_factory=threading.Event)

    def run(self, listener: socket.socket) -> None:
        environment = {
            **self.settings.environment,
            "POINTSMAN_HOME": str(self.settings.home),
            "POINTSMAN_CONFIG": str(self.settings.config_file),
            "POINTSMAN_PORT": str(self.settings.port),
        }
        descriptor = listener.fileno()
        self.gateways = [
            Child(f"gateway {n + 1}", [sys.executable, "-m", GATEWAY, "--fd", str(descriptor)], (descriptor,))
            for n in range(self.config.gateway.workers)
        ]
        children = [self.shipper, *self.gateways]
        while not self.stopping.wait(0.1):
            for child in children:
                child.watch(environment)
        for child in self.gateways:
            child.signal(signal.SIGTERM)
        listener.close()  # new clients are refused at once, not left waiting
        until = time.monotonic() + self.config.gateway.grace + 5
        for child in self.gateways:
            child.wait(max(until - time.monotonic(), 0.1))
        self.shipper.signal(signal.SIGTERM)
        self.shipper.wait(10)

    def take_signals(self) -> None:
        """From here on a signal stops us in order: what has been started is ended, in its turn."""

        def stop(number: int, frame: FrameType | None) -> None:
            if self.stopping.is_set():
                if not self.gateways:
                    raise KeyboardInterrupt
                for child in [*self.gateways, self.shipper]:
                    child.signal(signal.SIGKILL)
            self.stopping.set()

        def reload(number: int, frame: FrameType | None) -> None:
            for child in [*self.gateways, self.shipper]:
                child.signal(signal.SIGHUP)

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        signal.signal(signal.SIGHUP, reload)


def serve(settings: Settings, *, workers: int | None = None) -> None:
    """Serves until stopped. Starts the embedded PostgreSQL where no database is configured."""
    config = load_config(settings.config_file)
    configure_logging(form=config.log.format)
    if workers is not None:
        config = config.model_copy(update={"gateway": config.gateway.model_copy(update={"workers": workers})})
    settings.home.mkdir(parents=True, exist_ok=True)
    supervisor = Supervisor(settings, config)
    supervisor.take_signals()
    with ExitStack() as stack:
        listener = stack.enter_context(listen(config.gateway.host, config.gateway.port or settings.port))
        try:
            url = stack.enter_context(database_url(settings, config))
            prepare(url, settings)
        except OperationalError:
            if config.database.url is None:
                raise
            log.warning("Postgres is away: decisions go to the journal until it is back")
            late = threading.Thread(
                target=prepare_late, args=(config.database.url, settings, supervisor.stopping), daemon=True
            )
            late.start()
        write_private(settings.home / PID_FILE, str(os.getpid()).encode())
        stack.callback((settings.home / PID_FILE).unlink, missing_ok=True)
        supervisor.run(listener)


def prepare(url: str, settings: Settings) -> None:
    """The default project and the local key, in a migrated database."""
    engine = make_engine(url)
    try:
        with engine.begin() as connection:
            ensure_project(connection)
            ensure_admin_key(connection, settings.home)
    finally:
        engine.dispose()


def prepare_late(url: str, settings: Settings, stopping: threading.Event) -> None:
    """A configured server that was away at the start is migrated and prepared when it is back."""
    while not stopping.wait(LATE_SECONDS):
        try:
            migrate(url)
            prepare(url, settings)
        except OperationalError:
            continue
        except (SQLAlchemyError, UserError) as error:
            log.error("the database cannot be prepared (%s); decisions stay in the journal", type(error).__name__)
            continue
        log.info("Postgres is back and prepared")
        return


def listen(host: str, port: int) -> socket.socket:
    """The listening socket, or a `UserError` that says what holds the port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    until = time.monotonic() + PORT_SECONDS  # the children of a `serve` that was killed may still be leaving
    while True:
        try:
            listener.bind((host, port))
            listener.listen(2048)
            break
        except OSError as error:
            if error.errno == errno.EADDRINUSE and time.monotonic() < until:
                time.sleep(0.1)
                continue
            listener.close()
            raise UserError(
                f"cannot listen on {host}:{port}: {error.strerror}; stop what runs there or set POINTSMAN_PORT"
            ) from None
    if not is_loopback(host):
        log.warning("%s is reachable from other machines: every request from there needs a key", host)
    return listener
