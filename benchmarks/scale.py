"""What does a large log cost, in bytes, seconds and locks, and what does dropping a month of it take?

Fills an embedded PostgreSQL of its own with `--rows` narrow rows (four a request: request, decision, call, outcome)
over three months, then measures: bytes of a row with its indexes, the shipper's way in, reads, making a month's
partitions while the default one holds rows, and dropping the oldest month while writes go on. Every row is counted at
the end. Free disk is checked first (`--folder` says where). Texts are measured apart: `--words` in ask and answer.

    python benchmarks/scale.py --rows 10000000 --json
    python benchmarks/scale.py --quick

The arithmetic that follows from the figures is in docs/scale.md.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
from scaling import measures
from scaling.rows import TABLES, fill, made_requests

from pointsman.database.copy import copy_rows
from pointsman.database.embedded import embedded
from pointsman.database.engine import make_engine, psycopg_url
from pointsman.database.partitions import ensure_partitions
from pointsman.database.schema import migrate

START = datetime(2026, 1, 1, tzinfo=UTC)
SPAN = timedelta(days=90)  # three months
NOW = datetime(2026, 5, 1, tzinfo=UTC) + timedelta(days=2)  # 90 days before: January is over
BYTES_PER_ROW = 1_000  # of which more than half are indexes; twice that is asked for
QUICK_ROWS = 200_000


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    rows = QUICK_ROWS if arguments.quick and arguments.rows is None else arguments.rows or 2_000_000
    free, needed = shutil.disk_usage(arguments.folder).free, 2 * BYTES_PER_ROW * rows
    if free < needed:
        raise SystemExit(f"{arguments.folder}: {free / 1e9:.1f} GB free, {needed / 1e9:.1f} needed for {rows} rows")
    with tempfile.TemporaryDirectory(
        prefix="pointsman-scale-", dir=arguments.folder, ignore_cleanup_errors=True
    ) as home:
        Path(home).chmod(0o755)  # PostgreSQL runs as another user where we are root
        with embedded(Path(home)) as url:
            migrate(url)
            return {"rows": rows, "free_gigabytes": round(free / 1e9, 1), **_measured(url, rows // 4, arguments)}


def _measured(url: str, requests: int, arguments: argparse.Namespace) -> dict[str, Any]:
    rng = random.Random(arguments.seed)
    engine = make_engine(url, application="pointsman-scale")
    with psycopg.connect(psycopg_url(url), autocommit=True, options="-c timezone=UTC") as connection:
        with engine.begin() as made:
            ensure_partitions(made, START, 4)
        began = time.perf_counter()
        fill(connection, requests, START, SPAN)
        filled = time.perf_counter() - began
        measures.analyse(connection)
        found: dict[str, Any] = {"fill_rows_per_second": round(4 * requests / filled)}
        per_row = measures.bytes_per_row(engine, requests)
        found["bytes_per_row"] = per_row
        found["bytes_per_request"] = round(sum(per_row.values()))
        found["ship"] = measures.ship(connection, START + SPAN + timedelta(days=20), 40, rng)
        shipped = 40 * 500
        found["reads"] = measures.reads(engine, connection, rng)
        found |= _texts(connection, engine, rng, arguments.words)
        shipped += found.pop("text_requests")
        stray, found["new_month_seconds"] = _months(connection, engine, rng, min(requests // 10, 100_000))
        with psycopg.connect(psycopg_url(url), autocommit=True) as other:
            dropped = measures.drop(engine, connection, other, NOW, rng)
        found["drop"] = dropped
        january = sum(1 for n in range(requests) if START + SPAN * (n / requests) < datetime(2026, 2, 1, tzinfo=UTC))
        expected = requests - january + shipped + stray + dropped["requests_written_meanwhile"]
        counts = measures.counted(engine)
        found["rows_missing_or_doubled"] = {table: counts[table] - expected for table in TABLES}
    engine.dispose()
    return found


def _texts(connection: measures.Connection, engine: Any, rng: random.Random, words: int) -> dict[str, Any]:
    """Requests with texts, by the shipper's way, in a month of their own."""
    before = measures.bytes_per_row(engine, 1)
    ship = measures.ship(connection, datetime(2026, 5, 10, tzinfo=UTC), 10, rng, words)
    number = 10 * 500
    after = measures.bytes_per_row(engine, 1)
    added = sum(after[table] - before[table] for table in TABLES) / number
    return {
        "text_words": 2 * words,
        "text_bytes_per_request": round(added),
        "text_ship": ship,
        "journal_bytes_per_request": round(measures.journal_bytes(rng, 0)),
        "journal_bytes_with_text": round(measures.journal_bytes(rng, words)),
        "text_requests": number,
    }


def _months(
    connection: measures.Connection, engine: Any, rng: random.Random, stray: int
) -> tuple[int, dict[str, float]]:
    """A new month beside an empty default partition, beside a filled one, and one whose rows are in the default one."""
    beside_empty = measures.new_month(engine, datetime(2026, 7, 1, tzinfo=UTC))
    parts = stray // 2 // 500
    for part in range(parts):  # imported from long ago: they stay in the default partition
        _copy(connection, made_requests(500, datetime(2020, 1, 1, tzinfo=UTC) + timedelta(minutes=part), rng), "replay")
    beside_filled = measures.new_month(engine, datetime(2026, 8, 1, tzinfo=UTC))
    for part in range(parts):
        _copy(
            connection, made_requests(500, datetime(2026, 9, 1, tzinfo=UTC) + timedelta(minutes=part), rng), "traffic"
        )
    moved = measures.new_month(engine, datetime(2026, 9, 1, tzinfo=UTC))
    rows = 4 * 500 * parts
    return 2 * 500 * parts, {
        "default_rows": rows, "beside_empty": beside_empty, "beside_filled": beside_filled, "moving_as_many": moved,
    }  # fmt: skip


def _copy(connection: measures.Connection, rows: dict[str, list[dict[str, Any]]], origin: str) -> None:
    with connection.transaction():
        for table in TABLES:
            more = {"origin": origin} if table in ("decision", "outcome") else {}
            more |= {"purpose": "replay"} if table == "call" and origin == "replay" else {}
            copy_rows(connection, table, [{**row, **more} for row in rows[table]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, help="narrow rows, over four tables (default 2,000,000)")
    parser.add_argument(
        "--words", type=int, default=250, help="words in the ask and in the answer, for rows with texts"
    )
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where the database lies")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROWS} rows")
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    result = measure(arguments)
    for name, value in result.items():
        print(f"{name:26} {value}")
    if arguments.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
