"""Months' partitions: made ahead, given what the default one took before, dropped when all of it is old."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, Engine, text

from pointsman.database.copy import copy_rows
from pointsman.database.engine import psycopg_url
from pointsman.database.partitions import ensure_partitions, existing, expired, month_start
from pointsman.ids import id_at, lowest_id, new_id
from pointsman.journal.housekeeping import drop_expired, keep_house, keep_partitions
from pointsman.tables import PARTITIONED

LONG_AHEAD = datetime(2031, 12, 15, tzinfo=UTC)
PROJECT = new_id()


@pytest.fixture
def rolled_back(engine: Engine) -> Iterator[Connection]:
    """A connection whose changes, DDL too, are undone."""
    with engine.connect() as connection:
        yield connection
        connection.rollback()


@pytest.fixture
def rows(empty_database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(psycopg_url(empty_database), autocommit=True) as connection:
        yield connection


def decision(identity: str, moment: datetime, origin: str = "traffic") -> dict[str, Any]:
    return {
        "id": identity,
        "project_id": PROJECT,
        "request_id": identity,
        "decided_at": moment,
        "origin": origin,
        "eligible": {},
    }


def put(connection: psycopg.Connection[Any], moment: datetime, origin: str = "traffic") -> str:
    """A request, decision, call and outcome of a moment; one id for all."""
    identity = id_at(moment)
    base = {"id": identity, "project_id": PROJECT}
    replayed = origin == "replay"
    with connection.transaction():
        copy_rows(connection, "request", [base | {"received_at": moment}])
        copy_rows(connection, "decision", [decision(identity, moment, origin)])
        call = {"decision_id": identity, "worker": "w", "status": "ok", "started_at": moment}
        copy_rows(connection, "call", [base | call | {"purpose": "replay" if replayed else "serve"}])
        ended = {"decision_id": identity, "status": "ok", "ended_at": moment, "origin": origin}
        copy_rows(connection, "outcome", [base | ended])
    return identity


def where(connection: psycopg.Connection[Any], table: str) -> dict[str, str]:
    return dict(connection.execute(f"SELECT id::text, tableoid::regclass::text FROM {table}").fetchall())


def test_month_starts_over_a_years_end() -> None:
    assert month_start(datetime(2026, 11, 30, 23, tzinfo=UTC), 2) == datetime(2027, 1, 1, tzinfo=UTC)
    assert month_start(datetime(2027, 1, 1, tzinfo=UTC)) == datetime(2027, 1, 1, tzinfo=UTC)
    assert month_start(datetime(2027, 1, 1, tzinfo=UTC), -1) == datetime(2026, 12, 1, tzinfo=UTC)


def test_partitions_are_made_once_for_three_months(rolled_back: Connection) -> None:
    made = ensure_partitions(rolled_back, LONG_AHEAD)
    assert made == [f"{table}_{month}" for table in PARTITIONED for month in ("2031_12", "2032_01", "2032_02")]
    assert ensure_partitions(rolled_back, LONG_AHEAD) == []
    assert ensure_partitions(rolled_back, LONG_AHEAD + timedelta(days=31)) == [f"{t}_2032_03" for t in PARTITIONED]
    assert {"decision_default", "decision_2031_12"} <= existing(rolled_back, "decision")


def test_rows_at_the_bounds_are_in_their_month(engine: Engine, rows: psycopg.Connection[Any]) -> None:
    with engine.begin() as connection:
        ensure_partitions(connection, datetime(2029, 3, 10, tzinfo=UTC))
    first = datetime(2029, 4, 1, tzinfo=UTC)
    last, begins = put(rows, first - timedelta(milliseconds=1)), put(rows, first)
    assert where(rows, "decision") == {last: "decision_2029_03", begins: "decision_2029_04"}
    lowest = lowest_id(first)
    assert rows.execute("SELECT tableoid::regclass::text FROM decision WHERE id >= %s", [lowest]).fetchall() == [
        ("decision_2029_04",)
    ]


def test_what_the_default_partition_took_moves_to_its_month(engine: Engine, rows: psycopg.Connection[Any]) -> None:
    """A month without a partition must not make the next start fail: its rows move, and are still there once."""
    stray, other = put(rows, datetime(2030, 6, 15, tzinfo=UTC)), put(rows, datetime(2020, 1, 1, tzinfo=UTC))
    assert set(where(rows, "call").values()) == {"call_default"}
    keep_partitions(engine, datetime(2030, 5, 2, tzinfo=UTC))
    for table in PARTITIONED:
        assert where(rows, table) == {stray: f"{table}_2030_06", other: f"{table}_default"}
    again = put(rows, datetime(2030, 6, 16, tzinfo=UTC))
    assert where(rows, "outcome")[again] == "outcome_2030_06"
    with rows.transaction():
        assert copy_rows(rows, "decision", [decision(stray, datetime(2030, 6, 15, tzinfo=UTC))]) == 0
    plan = rows.execute("EXPLAIN SELECT FROM decision WHERE id = %s", [stray]).fetchall()
    assert "decision_2030_06" in str(plan) and "default" not in str(plan)  # pruned to one, by its key


def test_expired_are_those_whose_every_row_is_older(rolled_back: Connection) -> None:
    ensure_partitions(rolled_back, datetime(2025, 1, 5, tzinfo=UTC))
    rolled_back.execute(
        text(
            "CREATE TABLE decision_by_hand PARTITION OF decision FOR VALUES "
            "FROM ('f0000000-0000-0000-0000-000000000000') TO ('f1000000-0000-0000-0000-000000000000')"
        )
    )
    mine = {f"{table}_2025_{month}" for table in PARTITIONED for month in ("01", "02", "03")}

    def old(cutoff: datetime) -> set[str]:
        return set(expired(rolled_back, cutoff)) & mine

    assert old(datetime(2025, 1, 31, 23, 59, tzinfo=UTC)) == set()
    assert old(datetime(2025, 2, 1, tzinfo=UTC)) == {f"{table}_2025_01" for table in PARTITIONED}
    assert old(datetime(2025, 4, 1, tzinfo=UTC)) == mine
    assert not {name for name in expired(rolled_back, LONG_AHEAD) if "default" in name or "hand" in name}


def test_retention_drops_old_traffic_wherever_it_lies_and_keeps_the_rest(
    engine: Engine, rows: psycopg.Connection[Any], tmp_path: Path
) -> None:
    now = datetime(2028, 9, 20, tzinfo=UTC)
    with engine.begin() as connection:
        for month in (3, 4, 5, 6):
            ensure_partitions(connection, datetime(2028, month, 1, tzinfo=UTC), 0)
    old = put(rows, datetime(2028, 5, 31, tzinfo=UTC))
    kept = [put(rows, datetime(2028, 6, 20, tzinfo=UTC)), put(rows, datetime(2020, 1, 1, tzinfo=UTC), "replay")]
    stray = put(rows, datetime(2027, 2, 1, tzinfo=UTC))
    episodes = {}
    for decided in (old, kept[0]):
        episodes[decided] = new_id()
        with rows.transaction():
            started = {"project_id": PROJECT, "source": "new", "started_at": datetime(2028, 1, 1, tzinfo=UTC)}
            copy_rows(rows, "episode", [{"id": episodes[decided]} | started])
        rows.execute("UPDATE decision SET episode_id = %s WHERE id = %s", [episodes[decided], decided])
    dropped = drop_expired(engine, rows, now, 90)
    assert {f"{table}_2028_05" for table in PARTITIONED} <= set(dropped)
    assert not any("2028_06" in name for name in dropped)
    for table in PARTITIONED:
        left = where(rows, table)
        assert set(kept) == set(left), (table, old, stray)
    assert rows.execute("SELECT id::text FROM episode").fetchall() == [(episodes[kept[0]],)]  # it still goes on
    assert drop_expired(engine, rows, now, 90) == []


def test_housekeeping_gives_way_to_a_long_read(
    engine: Engine, rows: psycopg.Connection[Any], database_url: str, tmp_path: Path
) -> None:
    """It must not wait with its lock asked for: every insert would wait behind it."""
    rows.execute("SET lock_timeout = '50ms'")
    with psycopg.connect(psycopg_url(database_url)) as reader:
        reader.execute("SELECT count(*) FROM decision")
        with engine.begin() as connection, pytest.raises(Exception, match="lock timeout"):
            connection.execute(text("SELECT set_config('lock_timeout', '50ms', true)"))
            ensure_partitions(connection, datetime(2040, 1, 1, tzinfo=UTC))
    keep_house(engine, rows, tmp_path, datetime.now(UTC), 90, drained=True)


def test_a_drop_and_a_writer_of_two_tables_never_wait_for_each_other(
    engine: Engine, rows: psycopg.Connection[Any], database_url: str
) -> None:
    """The shipper writes request, decision, call, outcome in one transaction, and readers join them."""
    with engine.begin() as connection:
        ensure_partitions(connection, datetime(2022, 5, 1, tzinfo=UTC), 0)
    now, moment = datetime(2022, 10, 1, tzinfo=UTC), datetime(2022, 9, 1, tzinfo=UTC)
    identity = id_at(moment)
    call = {"id": identity, "project_id": PROJECT, "decision_id": identity, "worker": "w", "status": "ok"}
    with ThreadPoolExecutor(1) as pool, psycopg.connect(psycopg_url(database_url)) as writer:
        copy_rows(writer, "request", [{"id": identity, "project_id": PROJECT, "received_at": moment}])
        dropping = pool.submit(drop_expired, engine, rows, now, 90)
        waiting = "SELECT FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'"
        with psycopg.connect(psycopg_url(database_url), autocommit=True) as watcher:
            while not dropping.done() and watcher.execute(waiting).rowcount == 0:
                time.sleep(0.01)
        assert copy_rows(writer, "call", [call | {"started_at": moment}]) == 1
        writer.commit()
        dropped = set(dropping.result()) | set(drop_expired(engine, rows, now, 90))
    assert {f"{table}_2022_05" for table in PARTITIONED} <= dropped
    assert rows.execute("SELECT count(*) FROM call").fetchone() == (1,)
