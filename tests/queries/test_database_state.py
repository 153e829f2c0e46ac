"""What is said of a database that is there, empty, old, or away."""

from __future__ import annotations

from datetime import UTC, datetime

import psycopg
import pytest
from sqlalchemy import text

from pointsman.database.engine import make_engine, psycopg_url
from pointsman.database.schema import head_revision
from pointsman.queries import database_state, projects

LONG_AGO = datetime(2020, 2, 3, 4, 5, 6, 789_000, tzinfo=UTC)


def test_an_empty_database(empty_database, engine):
    state = database_state(engine)
    assert (state.reachable, state.migrated, state.current) == (True, True, True)
    assert state.revision == head_revision()
    assert state.newest_decision is None
    assert set(state.default_rows.values()) == {0}
    assert projects(engine) == ()


def test_rows_outside_every_month_are_counted(empty_database, engine, seeding):
    seeded = seeding.seed(empty_database, until=LONG_AGO, number=3)
    state = database_state(engine)
    assert state.default_rows == {name: len(seeded.rows[name]) for name in ("request", "decision", "call", "outcome")}
    assert abs((state.newest_decision - seeded.decisions[-1]["decided_at"]).total_seconds()) < 0.001
    assert [(project.id, project.name) for project in projects(engine)] == [(seeded.project, "main")]


@pytest.fixture
def bare_url(database_url):
    with psycopg.connect(psycopg_url(database_url), autocommit=True) as connection:
        connection.execute("CREATE DATABASE bare")
        yield database_url.replace("/pointsman?", "/bare?")
        connection.execute("DROP DATABASE bare WITH (FORCE)")


def test_a_database_without_our_schema(bare_url):
    bare = make_engine(bare_url)
    with bare.connect() as connection:
        assert connection.execute(text("SELECT current_database()")).scalar_one() == "bare"
    state = database_state(bare)
    assert (state.reachable, state.migrated, state.current) == (True, False, False)
    bare.dispose()


def test_a_database_that_is_away(tmp_path):
    away = make_engine(f"postgresql://nobody@/none?host={tmp_path}&port=5432")
    state = database_state(away)
    assert (state.reachable, state.current) == (False, False)
    assert "No such file or directory" in state.error
