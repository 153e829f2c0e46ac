"""Monthly partitions of the log by range of id, made ahead of time; dropping them is how retention works."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from sqlalchemy import Connection, text

from pointsman.ids import lowest_id
from pointsman.tables import PARTITIONED


def month_start(moment: datetime, offset: int = 0) -> datetime:
    """The first instant (UTC) of `moment`'s month, `offset` months on."""
    months = moment.year * 12 + moment.month - 1 + offset
    return datetime(months // 12, months % 12 + 1, 1, tzinfo=UTC)


def partition_name(table: str, start: datetime) -> str:
    return f"{table}_{start:%Y_%m}"


def existing(connection: Connection, table: str) -> set[str]:
    """The names of a log table's partitions, the default one included."""
    rows = connection.execute(
        text(
            "SELECT child.relname FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid "
            "WHERE inhparent = to_regclass(:table)"
        ),
        {"table": table},
    )
    return {row[0] for row in rows}


def ensure_partitions(
    connection: Connection, now: datetime, ahead: int = 2, tables: Sequence[str] = PARTITIONED
) -> list[str]:
    """Makes the partitions of this month and `ahead` more where they are absent; returns those made.

    Rows of such a month that were in the default partition move to their own. While others use the database, each
    of the `tables` belongs in a transaction of its own: it locks the table's default partition.
    """
    made: list[str] = []
    for table in tables:
        have = existing(connection, table)
        for offset in range(ahead + 1):
            start = month_start(now, offset)
            name = partition_name(table, start)
            if name not in have:
                _create(connection, table, name, lowest_id(start), lowest_id(month_start(now, offset + 1)))
                made.append(name)
    return made


def expired(connection: Connection, cutoff: datetime) -> list[str]:
    """Partitions whose every row is older than `cutoff`. One that is not named by its month is left alone."""
    names: list[str] = []
    for table in PARTITIONED:
        for name in existing(connection, table):
            month = re.fullmatch(rf"{table}_(\d{{4}})_(\d{{2}})", name)
            if month and month_start(datetime(int(month[1]), int(month[2]), 1, tzinfo=UTC), 1) <= cutoff:
                names.append(name)
    return sorted(names)


def _create(connection: Connection, table: str, name: str, low: str, high: str) -> None:
    """The partition of `table` for ids from `low` up to `high`, with what the default one holds of them."""
    # DDL takes no parameters. Every part is made here: fixed table names, a date, UUIDs checked as such.
    bounds = f"FROM ('{UUID(low)}') TO ('{UUID(high)}')"
    default = f"{table}_default"
    stray = text(f'SELECT EXISTS (SELECT FROM "{default}" WHERE id >= :low AND id < :high)')  # noqa: S608
    if not connection.execute(stray, {"low": low, "high": high}).scalar():
        connection.execute(text(f'CREATE TABLE "{name}" PARTITION OF "{table}" FOR VALUES {bounds}'))
        return
    connection.execute(text(f'LOCK TABLE "{default}" IN ACCESS EXCLUSIVE MODE'))
    connection.execute(text(f'CREATE TABLE "{name}" (LIKE "{table}" INCLUDING DEFAULTS INCLUDING CONSTRAINTS)'))
    move = f'WITH moved AS (DELETE FROM "{default}" WHERE id >= :low AND id < :high RETURNING *)'  # noqa: S608
    connection.execute(text(f'{move} INSERT INTO "{name}" SELECT * FROM moved'), {"low": low, "high": high})  # noqa: S608
    connection.execute(text(f'ALTER TABLE "{table}" ATTACH PARTITION "{name}" FOR VALUES {bounds}'))
