"""Rows as files: JSONL and Parquet as they are, CSV for spreadsheets with cells that could be formulas made text."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""A spreadsheet may run a cell that begins so (OWASP, CSV injection)."""
BATCH = 2_000  # rows of a Parquet row group


def cell(value: Any) -> str:
    """A value as a CSV cell: a text that could be a formula gets an apostrophe, numbers stay numbers."""
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return str(value)
    text = value if isinstance(value, str) else _text(value)
    return f"'{text}" if text.lstrip(" ").startswith(FORMULA) or text.startswith(FORMULA) else text


def csv_bytes(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> bytes:
    """With a byte order mark, which spreadsheets want for UTF-8."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow([cell(name) for name in columns])
    writer.writerows([cell(row[name]) for name in columns] for row in rows)
    return out.getvalue().encode("utf-8-sig")


def jsonl_bytes(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> bytes:
    """A row a line; times as ISO 8601, money as text."""
    lines = (json.dumps({name: row[name] for name in columns}, ensure_ascii=False, default=_plain) for row in rows)
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")


def parquet_bytes(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Every column is text but for numbers and booleans; objects as JSON."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, _TYPES.get(name, "string")) for name in columns])
    out = io.BytesIO()
    with pq.ParquetWriter(out, schema, compression="zstd") as writer:
        batch: list[dict[str, Any]] = []
        for row in rows:
            batch.append({name: _column(name, row[name]) for name in columns})
            if len(batch) == BATCH:
                writer.write_table(pa.Table.from_pylist(batch, schema))
                batch = []
        writer.write_table(pa.Table.from_pylist(batch, schema))
    return out.getvalue()


_TYPES = {"turn": "int64", "propensity": "float64", "latency_ms": "float64", "explored": "bool"}


def _column(name: str, value: Any) -> Any:
    if value is None or name in _TYPES or isinstance(value, str):
        return value
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=_plain)
    return str(_plain(value))


def _plain(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
