"""A whole Pointsman for the length of a block: a home of its own, `pointsman serve` as a process, ended by its pid."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

START_SECONDS = 60.0
STOP_SECONDS = 40.0


@dataclass(frozen=True)
class Instance:
    """Where a running gateway is, and the key that it wrote (every scope)."""

    url: str
    home: Path
    config_file: Path
    process: subprocess.Popen[bytes]

    @property
    def key(self) -> str:
        return (self.home / "admin.key").read_text()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def instance(config: str) -> Iterator[Instance]:
    """`pointsman serve` on a configuration text; raises with the end of its log where it does not start."""
    with tempfile.TemporaryDirectory(prefix="pointsman-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        home.chmod(0o755)  # PostgreSQL runs as another user where we are root
        file = home / "pointsman.toml"
        file.write_text(config)
        port = free_port()
        environment = {
            **os.environ,
            "POINTSMAN_HOME": str(home),
            "POINTSMAN_CONFIG": str(file),
            "POINTSMAN_PORT": str(port),
        }
        with (home / "serve.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "pointsman.commands", "serve"],
                env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        try:
            url = f"http://127.0.0.1:{port}"
            _await_ready(f"{url}/readyz", process, home / "serve.log")
            yield Instance(url, home, file, process)
        finally:
            _end(process)


def _await_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise SystemExit(f"pointsman serve did not start:\n{log.read_text(errors='replace')[-2000:]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
