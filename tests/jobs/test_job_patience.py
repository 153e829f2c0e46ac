"""Waiting out a Postgres that is away: what passes by itself is tried again, what does not is told at once."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from pointsman.errors import JobCancelled
from pointsman.jobs.patience import passing, patiently


def failing(times: int, error: Exception) -> Callable[[], int]:
    """Fails so often, then gives the number of calls."""
    calls = 0

    def action() -> int:
        nonlocal calls
        calls += 1
        if calls <= times:
            raise error
        return calls

    return action


AWAY = OperationalError("SELECT 1", {}, psycopg.OperationalError("connection refused"))


def test_what_passes_is_tried_again() -> None:
    assert patiently(failing(2, AWAY)) == 3


def test_patience_ends() -> None:
    with pytest.raises(OperationalError):
        patiently(failing(10, AWAY), seconds=0)


def test_a_cancelled_job_does_not_wait() -> None:
    def check() -> None:
        raise JobCancelled("now")

    with pytest.raises(JobCancelled):
        patiently(failing(10, AWAY), check=check)


@pytest.mark.parametrize("statement", ["SELECT 1/0", "SELECT * FROM no_such_table", "SELECT 'x'::int"])
def test_what_is_wrong_with_the_statement_is_told_at_once(engine: Engine, statement: str) -> None:
    with pytest.raises(DBAPIError) as caught, engine.connect() as connection:
        connection.execute(text(statement))
    assert not passing(caught.value)


def test_a_cut_connection_passes(engine: Engine) -> None:
    with pytest.raises(DBAPIError) as caught, engine.connect() as connection:
        connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
    assert passing(caught.value)


def test_a_deadlock_passes_and_a_duplicate_does_not() -> None:
    assert passing(OperationalError("x", {}, psycopg.errors.DeadlockDetected()))
    assert passing(OperationalError("x", {}, psycopg.errors.AdminShutdown()))
    assert not passing(IntegrityError("x", {}, psycopg.errors.UniqueViolation()))
