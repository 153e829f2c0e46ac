"""Monthly partitions of the log by range of id, made ahead of time; dropping them is how retention works."""

from __future__ import annotations

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
            "JOIN pg_class parent ON parent.oid = inhparent WHERE parent.relname = :table"
        ),
        {"table": table},
    )
    return {row[0] for row in rows}


def ensure_partitions(connection: Connection, now: datetime, ahead: int = 2) -> list[str]:
    """Makes the partitions of this month and `ahead` more where they are absent; returns those made."""
    made: list[str] = []
    for table in PARTITIONED:
        have = existing(connection, table)
        for offset in range(ahead + 1):
            start, end = month_start(now, offset), month_start(now, offset + 1)
            name = partition_name(table, start)
            if name not in have:
                connection.execute(text(_create(table, name, lowest_id(start), lowest_id(end))))
                made.append(name)
    return made


def expired(connection: Connection, cutoff: datetime) -> list[str]:
    """Partitions whose every row is older than `cutoff`."""
    names: list[str] = []
    for table in PARTITIONED:
        for name in existing(connection, table):
            year_month = name.removeprefix(f"{table}_")
            if year_month == "default":
                continue
            year, month = year_month.split("_")
            if month_start(datetime(int(year), int(month), 1, tzinfo=UTC), 1) <= cutoff:
                names.append(name)
    return sorted(names)


def _create(table: str, name: str, low: str, high: str) -> str:
    # DDL takes no parameters. Every part is made here: fixed table names, a date, UUIDs checked as such.
    bounds = f"FROM ('{UUID(low)}') TO ('{UUID(high)}')"
    return f'CREATE TABLE "{name}" PARTITION OF "{table}" FOR VALUES {bounds}'
