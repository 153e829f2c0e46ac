"""Real processes: `pointsman serve` on a home of its own, a worker in a thread, PostgreSQL that a test may stop."""

from __future__ import annotations

import json
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy.engine import make_url

from benchmarks.common.worker import Worker, working
from pointsman.database.embedded import EmbeddedPostgres
from pointsman.database.engine import psycopg_url


@dataclass(frozen=True)
class Server:
    """A PostgreSQL of these tests' own."""

    postgres: EmbeddedPostgres
    numbers: Iterator[int]

    def database(self) -> str:
        """The URL of a new, empty database."""
        name = f"served_{next(self.numbers)}"
        with psycopg.connect(psycopg_url(self.postgres.url), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')  # type: ignore[arg-type]
        return make_url(self.postgres.url).set(database=name).render_as_string(hide_password=False)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    home = Path(tempfile.mkdtemp(prefix="pointsman-processes-"))
    home.chmod(0o755)
    postgres = EmbeddedPostgres(home)
    postgres.start()
    yield Server(postgres, count())
    postgres.stop()
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def worker() -> Iterator[Worker]:
    with working() as made:
        yield made


def get(url: str) -> tuple[int, dict[str, Any]]:
    """Status and JSON body of a GET, errors included."""
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.fixture(scope="session")
def fetch() -> Any:
    return get
