"""What every scenario stands on: Postgres, the workers' process, `pointsman serve`; what the kernel says of it."""

from __future__ import annotations

import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.common.instance import Instance, instance
from benchmarks.common.ledger import await_shipped, children
from benchmarks.stress.client import PLACES, Ask
from benchmarks.stress.oracle import Match, match, read_journal
from pointsman.database.embedded import EmbeddedPostgres

GATEWAY = "harness.gateway.process"
UPSTREAM = "benchmarks.stress.upstream"
ESTABLISHED, CLOSE_WAIT = "01", "08"  # as /proc/net/tcp writes a connection's state
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Workers:
    """The workers' process: where it listens, and its journal."""

    url: str
    journal: Path

    def lines(self) -> list[dict[str, Any]]:
        return read_journal(self.journal)


@contextmanager
def workers(seed: int = 1, **settings: Any) -> Iterator[Workers]:
    with (
        tempfile.TemporaryDirectory(prefix="pointsman-workers-", dir="/tmp") as folder,
        socket.create_server(("127.0.0.1", 0), backlog=4096) as listener,
    ):
        file = Path(folder) / "journal"
        file.touch()
        command = [sys.executable, "-m", UPSTREAM, "--fd", str(listener.fileno()), "--journal", str(file)]
        command += ["--settings", json.dumps(settings), "--seed", str(seed)]
        process = subprocess.Popen(command, cwd=ROOT, pass_fds=[listener.fileno()], stdin=subprocess.DEVNULL)
        try:
            yield Workers(f"http://127.0.0.1:{listener.getsockname()[1]}", file)
        finally:
            process.terminate()
            process.wait(10)


@contextmanager
def postgres() -> Iterator[EmbeddedPostgres]:
    """A PostgreSQL that a scenario may stop."""
    with tempfile.TemporaryDirectory(prefix="pointsman-pg-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)  # PostgreSQL runs as another user where we are root
        with EmbeddedPostgres(Path(folder)) as server:
            yield server


def configuration(
    upstream: Workers, sections: str = "", *, database_url: str | None = None, dead: str | None = None
) -> str:
    """A `pointsman.toml` with the three workers, chosen by rule when a text names them. `dead`: one's address."""
    database = f'[database]\nurl = "{database_url}"\n' if database_url else ""
    rules = "".join(f'[[router.rules]]\nworker = "{name}"\nwords = ["{name}"]\n' for name in PLACES)
    entries = "".join(
        f'[[workers]]\nname = "{name}"\ndescription = "A worker of the load."\nmodel = "{name}"\n'
        f'base_url = "{dead if dead and name == PLACES[-1] else upstream.url}/v1"\n'
        f"price = {{ input = 1, output = 2 }}\n"
        'capabilities = ["tools", "images", "json_schema", "logprobs", "audio"]\n'
        for name in PLACES
    )
    return f'{database}{sections}\n[router]\nchain = ["rule", "default"]\ndefault = "north"\n{rules}{entries}'


@dataclass(frozen=True)
class Stage:
    """A served gateway with its workers."""

    upstream: Workers
    served: Instance
    database_url: str

    @property
    def url(self) -> str:
        return self.served.url

    def gateways(self) -> list[int]:
        return children(self.served.process.pid).get(GATEWAY, [])

    def settle(self, asks: Sequence[Ask], *, seconds: float = 60.0, repeated: bool = False) -> Match:
        """Waits until all is in Postgres, then joins."""
        await_shipped(self.database_url, self.served.home / "journal", seconds)
        return match(self.database_url, self.upstream.lines(), asks, repeated=repeated)


@contextmanager
def stage(
    sections: str = "",
    *,
    seed: int = 1,
    dead: str | None = None,
    database_url: str | None = None,
    **settings: Any,
) -> Iterator[Stage]:
    """Workers and a gateway, on an embedded PostgreSQL of its own unless a database is given."""
    with (
        workers(seed, **settings) as upstream,
        instance(configuration(upstream, sections, database_url=database_url, dead=dead)) as served,
    ):
        yield Stage(upstream, served, database_url or EmbeddedPostgres(served.home).url)


def added(asks: Sequence[Ask], journal: Sequence[dict[str, Any]]) -> list[float]:
    """Seconds of each whole ask beyond those that its worker took."""
    took = {line["serial"]: line["ended"] - line["began"] for line in journal}
    return [ask.seconds - took[ask.serial] for ask in asks if ask.whole and ask.serial in took]


def rss_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def descriptors(pid: int, upstream: Workers) -> int:
    """A gateway's open files and sockets, but for connections to workers: idle ones are kept for up to a minute."""
    port = f":{urlsplit(upstream.url).port:04X}"
    lines = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    kept = sum(line[2].endswith(port) and line[3] in (ESTABLISHED, CLOSE_WAIT) for line in lines)
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()) - kept


def wait_until(condition: Callable[[], bool], seconds: float) -> float:
    """Seconds until the condition holds; infinite where it does not in time."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        if condition():
            return time.monotonic() - began
        time.sleep(0.1)
    return math.inf
