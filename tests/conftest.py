"""Fixtures that every test may use: a migrated PostgreSQL of this run's own, empty or seeded.

The server listens on a unix socket in a temporary folder, starts when the first test asks for it
and ends with the run. Tests share one database: a test that needs it empty asks for
`empty_database`; a module that reads many rows seeds it once with a module-scoped fixture.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from pointsman.database.embedded import embedded
from pointsman.database.engine import make_engine
from pointsman.database.schema import migrate
from pointsman.tables import METADATA


@pytest.fixture(scope="session")
def database_url() -> Iterator[str]:
    """The URL of a migrated database on a server that belongs to this run alone."""
    home = Path(tempfile.mkdtemp(prefix="pointsman-tests-"))
    home.chmod(0o755)  # as root the server runs under another account, which must reach the folder
    try:
        with embedded(home) as url:
            migrate(url)
            yield url
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def engine(database_url: str) -> Iterator[Engine]:
    """An engine on `database_url`, shared by the run."""
    made = make_engine(database_url, application="pointsman-tests")
    yield made
    made.dispose()


def truncate(engine: Engine) -> None:
    """Empties every table of ours, in one statement."""
    names = ", ".join(f'"{name}"' for name in METADATA.tables)
    with engine.begin() as connection:
        connection.execute(text(f"TRUNCATE {names} CASCADE"))


@pytest.fixture(scope="session")
def empty(engine: Engine) -> Callable[[], None]:
    """Empties the database when called: for module-scoped fixtures that seed it."""
    return lambda: truncate(engine)


@pytest.fixture
def empty_database(database_url: str, empty: Callable[[], None]) -> str:
    """The URL of the database, with no row in it."""
    empty()
    return database_url


def _support(name: str) -> Any:
    """A module of tests/support, loaded by path: tests are no package."""
    file = Path(__file__).parent / "support" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"pointsman_tests_{name}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up by name
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def support() -> Callable[[str], Any]:
    """`support(name)`: the module tests/support/NAME.py."""
    return _support


@pytest.fixture(scope="session")
def gate_log() -> Any:
    """Two routers that always disagree, row by row: `gate_log.Synthetic(engine, project)`."""
    return _support("gate_log")


@pytest.fixture(scope="session")
def seeding() -> Any:
    """The module tests/support/seeding.py: `seeding.seed(url, until=…)` fills a log to read."""
    return _support("seeding")


@pytest.fixture
def log(empty_database: str) -> Iterator[Any]:
    """An empty log that a test fills by hand: tests/support/small_log.py."""
    made = _support("small_log").Log(empty_database)
    yield made
    made.close()
