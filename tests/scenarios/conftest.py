"""Databases of the scenarios' own, on this run's server, and one gateway that several of them share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import psycopg
import pytest
from sqlalchemy.engine import make_url

from benchmarks.stress.scene import Stage, stage
from pointsman.database.engine import psycopg_url


@pytest.fixture(scope="session")
def new_database(database_url: str) -> Callable[[], str]:
    """The URL of a new, empty database, with each call."""
    numbers = count(1)

    def make() -> str:
        name = f"scenario_{next(numbers)}"
        with psycopg.connect(psycopg_url(database_url), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return make_url(database_url).set(database=name).render_as_string(hide_password=False)

    return make


@pytest.fixture(scope="module")
def shared(new_database: Callable[[], str]) -> Iterator[Stage]:
    """A gateway whose gap limit is 1 s, with its workers."""
    with stage("[timeouts]\ngap = 1\n", database_url=new_database(), pause=0.02) as at:
        yield at


@pytest.fixture(scope="module")
def numbers() -> count[int]:
    """Numbers for the asks of those who share a gateway, so that none comes twice."""
    return count(1)
