"""Thousands of rows through a partition's life: taken by the default one, attached, dropped; none lost or doubled."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from typer.testing import CliRunner

from pointsman.commands.app import build_app
from pointsman.commands.retention import plan
from pointsman.database.copy import copy_rows
from pointsman.database.engine import psycopg_url
from pointsman.database.partitions import ensure_partitions, existing
from pointsman.ids import id_at, new_id
from pointsman.tables import PARTITIONED

OLD, KEPT = datetime(2023, 5, 1, tzinfo=UTC), datetime(2023, 6, 1, tzinfo=UTC)
NOW = datetime(2023, 8, 31, tzinfo=UTC)  # 90 days before: the second of June
EACH = 1_500
PROJECT = new_id()


def rows(month: datetime, origin: str) -> dict[str, list[dict]]:
    """`EACH` requests with decision, call and outcome, all over a month."""
    made: dict[str, list[dict]] = {table: [] for table in PARTITIONED}
    for number in range(EACH):
        moment = month + timedelta(days=28) * (number / EACH)
        identity = id_at(moment, number.to_bytes(10, "big"))
        base = {"id": identity, "project_id": PROJECT}
        decided = {"request_id": identity, "decided_at": moment, "eligible": {}, "origin": origin}
        ended = {"decision_id": identity, "status": "ok", "ended_at": moment, "origin": origin}
        called = {"decision_id": identity, "worker": "w", "status": "ok", "started_at": moment}
        made["request"].append(base | {"received_at": moment})
        made["decision"].append(base | decided)
        made["call"].append(base | called)
        made["outcome"].append(base | ended)
    return made


def counts(connection: psycopg.Connection, table: str) -> dict[str, int]:
    query = f"SELECT tableoid::regclass::text, count(*) FROM {table} GROUP BY 1"
    return dict(connection.execute(query).fetchall())


@pytest.fixture
def connection(empty_database):
    with psycopg.connect(psycopg_url(empty_database), autocommit=True) as made:
        yield made


def test_create_attach_drop(engine, connection, empty_database, tmp_path) -> None:
    for month in (OLD, KEPT):
        for table, some in rows(month, "traffic").items():
            with connection.transaction():
                assert copy_rows(connection, table, some) == EACH
    assert all(counts(connection, table) == {f"{table}_default": 2 * EACH} for table in PARTITIONED)

    with engine.begin() as made:  # created, filled from the default one, attached
        assert len(ensure_partitions(made, OLD, 1)) == 2 * len(PARTITIONED)
    for table in PARTITIONED:
        assert counts(connection, table) == {f"{table}_2023_05": EACH, f"{table}_2023_06": EACH}
        for month in (OLD, KEPT):  # the same rows again find themselves there
            with connection.transaction():
                assert copy_rows(connection, table, rows(month, "traffic")[table][:50]) == 0

    going = plan(engine, NOW, 90).going
    mine = {size.name: size.rows for size in going if "_2023_" in size.name}
    assert mine == {f"{table}_2023_05": EACH for table in PARTITIONED}
    assert all(size.bytes > 50_000 and size.until == KEPT for size in going if "_2023_" in size.name)

    config = tmp_path / "pointsman.toml"
    worker = '[[workers]]\nname = "w"\ndescription = "w"\nmodel = "w"\nbase_url = "http://127.0.0.1:1/v1"\n'
    config.write_text(f'[database]\nurl = "{empty_database}"\n{worker}')
    kept_days = (datetime.now(UTC) - KEPT - timedelta(days=1)).days

    def run(*more: str) -> dict:
        arguments = ["retention", "--days", str(kept_days), "--json", "--config", str(config), *more]
        done = CliRunner().invoke(build_app([]), arguments)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    assert run()["dropped"] is None
    assert all(sum(counts(connection, table).values()) == 2 * EACH for table in PARTITIONED)
    assert {name for name in run("--drop")["dropped"] if "_2023_" in name} == set(mine)
    for table in PARTITIONED:
        assert counts(connection, table) == {f"{table}_2023_06": EACH}
        with engine.connect() as reader:
            assert f"{table}_2023_05" not in existing(reader, table)
        connection.execute(f"DROP TABLE {table}_2023_06")
