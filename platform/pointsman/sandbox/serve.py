"""Runs the sandbox's server: in this process until it is told to stop, or beside a test or demonstration."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from pointsman.errors import PointsmanError
from pointsman.sandbox.server import DEFAULT_LATENCY_SCALE, app

_LINGER_NOT = struct.pack("ii", 1, 0)
_START_SECONDS = 10.0


class BreakableProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with a way for the application to reset or close its connection."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        extensions: dict[str, Any] = {"pointsman.abort": self._abort, "pointsman.close": self.transport.close}
        self.scope["extensions"] = extensions

    def _abort(self) -> None:
        """A TCP reset: without lingering, a close sends RST instead of FIN."""
        connection = self.transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
        self.transport.abort()


def server(seed: int, host: str, port: int, latency_scale: float = DEFAULT_LATENCY_SCALE) -> uvicorn.Server:
    """A server that is ready to run; port 0 takes any free one."""
    config = uvicorn.Config(
        app(seed, latency_scale=latency_scale),
        host=host,
        port=port,
        loop="uvloop",
        http=BreakableProtocol,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)


def run(seed: int, host: str, port: int, latency_scale: float = DEFAULT_LATENCY_SCALE) -> None:
    """Serves until SIGINT or SIGTERM."""
    server(seed, host, port, latency_scale).run()


@contextmanager
def serving(seed: int, *, latency_scale: float = 0.0, port: int = 0) -> Iterator[str]:
    """Serves on loopback in a thread; gives the address, without a path: `http://127.0.0.1:PORT`."""
    running = server(seed, "127.0.0.1", port, latency_scale)
    thread = threading.Thread(target=running.run, name="sandbox", daemon=True)
    thread.start()
    try:
        _wait_until_started(running, thread)
        yield f"http://127.0.0.1:{running.servers[0].sockets[0].getsockname()[1]}"
    finally:
        running.should_exit = True
        thread.join(timeout=_START_SECONDS)


def _wait_until_started(running: uvicorn.Server, thread: threading.Thread) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not running.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            raise PointsmanError("the sandbox did not start; is its port taken?")
        time.sleep(0.005)
