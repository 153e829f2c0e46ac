"""Rows into Postgres in bulk: COPY into a temporary table, then insert by id, doing nothing for known ids.

Values are cleaned first (`clean`), since one value that `jsonb` refuses would fail a whole batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import psycopg
from psycopg import sql

from pointsman.database.clean import clean_json, clean_text
from pointsman.tables import METADATA

Row = Mapping[str, Any]

_REPLACE_ABANDONED = sql.SQL(
    " ON CONFLICT (id) DO UPDATE SET {assignments} "
    "WHERE outcome.status = 'abandoned' AND excluded.status <> 'abandoned'"
)


def copy_rows(connection: psycopg.Connection[Any], table: str, rows: Iterable[Row]) -> int:
    """Inserts `rows` (column → value) into `table`, within the caller's transaction; returns how many were new.

    A row may leave out columns that have a default. JSON columns take Python values or `bytes` of
    JSON; array columns take lists, or `bytes` of a JSON list; anything else what its text form is.
    Rows whose key exists are left alone, except that a real outcome replaces one marked `abandoned`.
    """
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row)].append(row)
    return sum(_copy_group(connection, table, columns, group) for columns, group in groups.items())


def _copy_group(connection: psycopg.Connection[Any], table: str, columns: tuple[str, ...], rows: list[Row]) -> int:
    described = METADATA.tables[table].columns
    kinds = [_kind(described[column].type) for column in columns]
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    staging = sql.Identifier(f"staging_{table}")
    target = sql.Identifier(table)
    with connection.cursor() as cursor:
        cursor.execute(
            sql.SQL("CREATE TEMP TABLE {} ON COMMIT DROP AS SELECT {} FROM {} WITH NO DATA").format(
                staging, names, target
            )
        )
        with cursor.copy(sql.SQL("COPY {} ({}) FROM STDIN").format(staging, names)) as copy:
            for row in rows:
                copy.write_row([_value(kind, value) for kind, value in zip(kinds, row.values(), strict=True)])
        key = [column.name for column in METADATA.tables[table].primary_key.columns]
        cursor.execute(
            sql.SQL("INSERT INTO {} ({}) SELECT DISTINCT ON ({}) {} FROM {}").format(
                target, names, sql.SQL(", ").join(map(sql.Identifier, key)), names, staging
            )
            + _on_conflict(table, columns)
        )
        new = cursor.rowcount
        cursor.execute(sql.SQL("DROP TABLE {}").format(staging))
    return new


def _on_conflict(table: str, columns: tuple[str, ...]) -> sql.Composable:
    if table != "outcome":
        return sql.SQL(" ON CONFLICT DO NOTHING")
    assignments = sql.SQL(", ").join(
        sql.SQL("{} = excluded.{}").format(sql.Identifier(column), sql.Identifier(column))
        for column in columns
        if column != "id"
    )
    return _REPLACE_ABANDONED.format(assignments=assignments)


def _kind(column_type: Any) -> str:
    name = type(column_type).__name__
    return {"JSONB": "json", "ARRAY": "array"}.get(name, "plain")


def _value(kind: str, value: Any) -> Any:
    if value is None:
        return None
    if kind == "json":
        return clean_json(value)
    if kind == "array":
        value = msgspec.json.decode(value) if isinstance(value, bytes) else value
        return [clean_text(str(item)) for item in value]
    return clean_text(value) if isinstance(value, str) else value
