"""One gateway process: `python -m harness.gateway.process --fd N`, on a socket inherited from `serve`.

SIGHUP reloads the configuration, SIGTERM and SIGINT stop gracefully, and so does the end of the parent.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import math
import os
import signal
import socket
import sys
import threading
from types import FrameType

import uvicorn

from harness.gateway.app import Gateway
from harness.gateway.protocol import RequestProtocol
from harness.gateway.state import State
from pointsman.config import Settings, load_config
from pointsman.database.open import configured_url
from pointsman.logs import configure_logging

KEEP_ALIVE_SECONDS = 75
CLOSING_SECONDS = 2  # after the grace, for what was cut short to say so in-band

log = logging.getLogger("pointsman.gateway")


class Server(uvicorn.Server):
    """Tells the gateway that it stops, and cuts requests short after the grace, before connections are closed."""

    def __init__(self, config: uvicorn.Config, state: State, grace: float) -> None:
        super().__init__(config)
        self._state = state
        self._grace = grace

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._state.stopping = True
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._state.reload_or_log)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})  # one that came meanwhile takes effect now

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        cut = asyncio.get_running_loop().call_later(self._grace, self._cut)
        await super().shutdown(sockets=sockets)
        cut.cancel()

    def _cut(self) -> None:
        log.warning("%d requests are cut short: the grace time is over", len(self.server_state.tasks))
        for task in list(self.server_state.tasks):
            task.cancel()


def run(settings: Settings, listener: socket.socket) -> None:
    """Serves until told to stop."""
    # Requests leave few cycles behind: at the default thresholds collecting took 8% of the CPU.
    gc.set_threshold(50_000, 20, 100)
    config = load_config(settings.config_file)
    configure_logging(form=config.log.format)
    state = State(settings, config, configured_url(settings, config))
    server = Server(
        uvicorn.Config(
            Gateway(state),
            loop="uvloop",
            http=RequestProtocol,
            lifespan="on",
            access_log=False,
            log_config=None,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=math.ceil(config.gateway.grace) + CLOSING_SECONDS,
            backlog=2048,
        ),
        state,
        config.gateway.grace,
    )
    server.run(sockets=[listener])


def leave(number: int, frame: FrameType | None) -> None:
    """Before there is a server to stop, and again when it has stopped: uvicorn raises the signal that ended it."""
    sys.exit(0)


def stop_with_parent() -> None:
    """Ends this process gracefully when the parent is gone: the pipe on standard input then ends."""

    def watch() -> None:
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fd", type=int, required=True, help="the listening socket")
    arguments = parser.parse_args()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})  # until there is something to reload
    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)
    os.umask(0o077)  # journal, cursors and directories are for this account alone
    configure_logging()
    stop_with_parent()
    run(Settings.read(), socket.socket(fileno=arguments.fd))


if __name__ == "__main__":
    main()
