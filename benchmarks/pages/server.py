"""The dashboard as a process over a database, for benchmarks and screenshots: `pointsman dashboard` by its command."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import psutil
from common.instance import free_port
from pages.seed import WORKERS

ROOT = Path(__file__).parents[2]
CONFIG = """
[database]
url = "{url}"
[router]
chain = ["default"]
default = "atlas"
"""
WORKER = """
[[workers]]
name = "{name}"
description = "A worker of the benchmark."
model = "{name}-1"
base_url = "http://127.0.0.1:1/v1"
price = {{input = {price}, output = {price}}}
"""


@contextmanager
def served(home: Path, url: str) -> Iterator[tuple[str, psutil.Process]]:
    """`pointsman dashboard` as a process; its address."""
    file = home / "pointsman.toml"
    workers = (WORKER.format(name=name, price=price) for name, price in zip(WORKERS, (9, 1, 2, 3), strict=True))
    file.write_text(CONFIG.format(url=url) + "".join(workers))
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "pointsman.commands", "dashboard"],
        env={**os.environ, "POINTSMAN_HOME": str(home), "POINTSMAN_CONFIG": str(file), "POINTSMAN_PORT": str(port - 1)},
        cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        _await(f"http://127.0.0.1:{port}/_stcore/health", process)
        yield f"http://127.0.0.1:{port}", psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(20)


def _await(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        if process.poll() is not None:
            raise SystemExit("the dashboard ended at its start")
        try:
            with urlopen(url, timeout=2):
                return
        except (URLError, OSError):
            time.sleep(0.1)
    raise SystemExit("the dashboard did not answer within a minute")
