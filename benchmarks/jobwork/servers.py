"""Brokers as processes of their own: Redis and RabbitMQ from Debian's packages, and the embedded one of a home.

Each is on loopback, in a folder of its own, and can be killed, started again and flushed. No service of
the system is touched. A program that is missing is named together with its package.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import psutil

START_SECONDS = 120.0
STOP_SECONDS = 30.0
QUEUES = ("pointsman.default", "pointsman.probe", "pointsman.train")


class Broker(Protocol):
    """What the kill rounds do to a broker."""

    @property
    def url(self) -> str | None:
        """Its address; None where workers start it themselves."""

    def kill(self) -> None:
        """kill -9."""

    def start(self) -> None:
        """Starts it, unless it runs, and waits until it answers."""

    def flush(self) -> None:
        """Every message in it is lost."""

    def close(self) -> None: ...


def program(name: str, *elsewhere: str) -> str:
    """Where a program is; SystemExit that names Debian's package where it is missing."""
    for path in (*elsewhere, shutil.which(name) or "", f"/usr/sbin/{name}"):
        if path and Path(path).exists():
            return path
    raise SystemExit(f"{name} is missing: apt-get install {name} (as root, `make system` does)")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class RedisServer:
    """Debian's `redis-server`, by default without persistence: what it holds is lost with it."""

    def __init__(self, command: list[str] | None = None, password: str | None = None) -> None:
        self._folder = tempfile.mkdtemp(prefix="pm-redis-")
        self._port = free_port()
        self._password = password
        given = command or [program("redis-server"), "--save", ""]
        place = ["--port", str(self._port), "--bind", "127.0.0.1", "--dir", self._folder]
        self._command = [given[0], *given[1:], *place]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        user = f":{self._password}@" if self._password else ""
        return f"redis://{user}127.0.0.1:{self._port}/0"

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        await_port(self._port, self._process)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def flush(self) -> None:
        self._client().flushall()

    def memory(self) -> int:
        """Bytes in use."""
        return int(self._client().info("memory")["used_memory"])

    def close(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(STOP_SECONDS)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _client(self) -> object:
        import redis

        return redis.Redis.from_url(self.url)


class RabbitServer:
    """Debian's `rabbitmq-server` with a node name, ports, port mapper and folders of its own."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="pm-rabbit-"))
        self._port, self._distribution, self._mapper = free_port(), free_port(), free_port()
        script = program("rabbitmq-server", "/usr/lib/rabbitmq/bin/rabbitmq-server")
        self._command = [script]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self._port}//"

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        if self._process is None or self._process.poll() is not None:
            with (self._folder / "out.log").open("ab") as log:
                self._process = subprocess.Popen(
                    self._command, env=self._environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    start_new_session=True,
                )  # fmt: skip
        await_port(self._port, self._process)

    def kill(self) -> None:
        if self._process is None:
            return
        for one in self._family():
            with suppress(psutil.NoSuchProcess):
                one.kill()
        self._process.wait()

    def flush(self) -> None:
        import kombu

        with kombu.Connection(self.url, connect_timeout=5) as connection:
            for name in QUEUES:
                channel = connection.channel()
                with suppress(*connection.channel_errors):
                    channel.queue_purge(name)

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            for one in self._family()[1:]:
                with suppress(psutil.NoSuchProcess):
                    if one.name().startswith("beam"):
                        one.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_SECONDS)
        self.kill()
        mapper = ["epmd", "-port", str(self._mapper), "-kill"]
        subprocess.run(mapper, env=self._environment(), stdout=subprocess.DEVNULL, check=False)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _family(self) -> list[psutil.Process]:
        assert self._process is not None
        with suppress(psutil.NoSuchProcess):
            parent = psutil.Process(self._process.pid)
            return [parent, *parent.children(recursive=True)]
        return []

    def _environment(self) -> dict[str, str]:
        home = self._folder
        return {
            "PATH": f"{os.environ['PATH']}:/usr/sbin",
            "LANG": "C.UTF-8",
            "HOME": str(home),
            "RABBITMQ_NODENAME": f"pm{self._port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self._port),
            "RABBITMQ_DIST_PORT": str(self._distribution),
            "ERL_EPMD_PORT": str(self._mapper),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_MNESIA_BASE": str(home / "data"),
            "RABBITMQ_LOG_BASE": str(home / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(home / "none"),
        }


def await_port(port: int, process: subprocess.Popen[bytes], seconds: float = START_SECONDS) -> None:
    """Until something answers on a port of loopback; SystemExit where its process ends before."""
    until = time.monotonic() + seconds
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        if process.poll() is not None or time.monotonic() > until:
            raise SystemExit(f"{process.args} did not start on port {port}; it ended with {process.poll()}")
        time.sleep(0.05)
