"""Rows into Postgres in bulk: COPY into a temporary table, then insert by id, doing nothing for known ids.

Values are cleaned first (`clean`), since one value that Postgres refuses would fail a whole batch: a
count or a sum of money beyond its column becomes NULL.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec
import psycopg
from psycopg import sql
from sqlalchemy import Integer, Numeric
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from pointsman.database.clean import clean_json, clean_text
from pointsman.errors import BrokenInvariant
from pointsman.tables import METADATA

Row = Mapping[str, Any]

MAX_INTEGER = 2**31 - 1
MAX_MONEY = Decimal(10) ** 10

# An `abandoned` outcome is a guess, which the real one, where it was logged after all, replaces.
_REPLACE_ABANDONED = sql.SQL(
    " ON CONFLICT (id) DO UPDATE SET {assignments} "
    "WHERE outcome.status = 'abandoned' AND excluded.status <> 'abandoned'"
)


class UnknownColumn(BrokenInvariant):
    """A row of a table or with a column that this version of the schema does not have."""


def copy_rows(connection: psycopg.Connection[Any], table: str, rows: Iterable[Row]) -> int:
    """Inserts `rows` (column → value) into `table`, within the caller's transaction; returns how many were new.

    A row may leave out columns that have a default. Values are Python's, or `msgspec.Raw` JSON of
    any kind. JSON columns also take `bytes` of JSON, array columns `bytes` of a JSON list. Rows
    whose key exists are left alone, except that a real outcome replaces one marked `abandoned`.
    """
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row)].append(row)
    return sum(_copy_group(connection, table, columns, group) for columns, group in groups.items())


def _copy_group(connection: psycopg.Connection[Any], table: str, columns: tuple[str, ...], rows: list[Row]) -> int:
    kinds = _kinds(table, columns)
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    staging, target = sql.Identifier(f"staging_{table}"), sql.Identifier(table)
    key = sql.SQL(", ").join(sql.Identifier(column.name) for column in METADATA.tables[table].primary_key.columns)
    with connection.cursor() as cursor:
        # Kept for the session: a table made and dropped for every batch would bloat the catalogue.
        cursor.execute(
            sql.SQL("CREATE TEMP TABLE IF NOT EXISTS {} ON COMMIT DELETE ROWS AS SELECT * FROM {} WITH NO DATA").format(
                staging, target
            )
        )
        with cursor.copy(sql.SQL("COPY {} ({}) FROM STDIN").format(staging, names)) as copy:
            for row in rows:
                copy.write_row([_value(kind, value) for kind, value in zip(kinds, row.values(), strict=True)])
        cursor.execute(
            sql.SQL("INSERT INTO {} ({}) SELECT DISTINCT ON ({}) {} FROM {}").format(target, names, key, names, staging)
            + _on_conflict(table, columns)
        )
        new = cursor.rowcount
        cursor.execute(sql.SQL("DELETE FROM {}").format(staging))
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


def _kinds(table: str, columns: tuple[str, ...]) -> list[str]:
    described = METADATA.tables.get(table)
    if described is None:
        raise UnknownColumn(f"no table {table!r}")
    if unknown := [column for column in columns if column not in described.columns]:
        raise UnknownColumn(f"no column {unknown} in {table}")
    return [_kind(described.columns[column].type) for column in columns]


def _kind(column_type: Any) -> str:
    for kind, known in (("json", JSONB), ("array", ARRAY), ("integer", Integer)):
        if isinstance(column_type, known):
            return kind
    return "money" if isinstance(column_type, Numeric) and column_type.asdecimal else "plain"


def _value(kind: str, value: Any) -> Any:
    if isinstance(value, msgspec.Raw):
        raw = bytes(value)
        value = raw if kind in ("json", "array") and raw != b"null" else _scalar(raw)
    if value is None:
        return None
    if kind == "json":
        text = clean_json(value)
        return None if text == "null" else text
    if kind == "array":
        value = json.loads(clean_json(value)) if isinstance(value, bytes) else value
        return [clean_text(str(item)) for item in (value if isinstance(value, list | tuple) else [value])]
    if kind == "integer":
        return None if isinstance(value, int) and abs(value) > MAX_INTEGER else value
    if kind == "money":
        return _money(value)
    return clean_text(value) if isinstance(value, str) else value


def _scalar(raw: bytes) -> Any:
    """The value of a JSON text; what is no scalar stays text."""
    if raw[:1] in (b"{", b"["):
        return raw.decode("utf-8", "replace")
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError):  # a lone surrogate, or a number beyond any column
        return json.loads(clean_json(raw))


def _money(value: Any) -> Any:
    try:
        amount = Decimal(value)
    except (InvalidOperation, TypeError, ValueError):
        return value  # not a number: for Postgres to refuse
    return amount if amount.is_finite() and abs(amount) < MAX_MONEY else None
