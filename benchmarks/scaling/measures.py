"""What a large log costs: bytes of a row, the shipper's way in, reads, new months, dropped months."""

from __future__ import annotations

import random
import statistics
import threading
import time
from datetime import datetime, timedelta
from typing import Any

import psycopg
from scaling.rows import PROJECT, TABLES, made_requests
from sqlalchemy import Engine, func, select

from pointsman.database.copy import copy_rows
from pointsman.database.partitions import ensure_partitions
from pointsman.database.sizes import partition_sizes
from pointsman.journal.housekeeping import drop_expired
from pointsman.journal.lines import Payload, encode_line
from pointsman.outlet.reading import Selection, pages
from pointsman.outlet.subjects import subject
from pointsman.queries import DecisionFilter, decision_record, decisions_page
from pointsman.tables import METADATA

Connection = psycopg.Connection[Any]


def analyse(connection: Connection) -> None:
    """So that sizes and plans are those of a log that autovacuum has seen."""
    for table in TABLES:
        connection.execute(psycopg.sql.SQL("ANALYZE {}").format(psycopg.sql.Identifier(table)))


def bytes_per_row(engine: Engine, requests: int) -> dict[str, float]:
    """By table, with indexes and TOAST, over all partitions."""
    with engine.connect() as connection:
        sizes = partition_sizes(connection)
    return {table: round(sum(s.bytes for s in sizes if s.table == table) / requests, 1) for table in TABLES}


def journal_bytes(rng: random.Random, words: int, number: int = 200) -> float:
    """Of a request's two lines (what is known before the call, and after it)."""
    rows = made_requests(number, datetime(2026, 1, 1).astimezone(), rng, words)
    total = 0
    for request, decision, call, outcome in zip(*(rows[table] for table in TABLES), strict=True):
        total += len(encode_line(Payload([("request", _plain(request)), ("decision", _plain(decision))])))
        total += len(encode_line(Payload([("call", _plain(call)), ("outcome", _plain(outcome))])))
    return total / number


def ship(connection: Connection, start: datetime, batches: int, rng: random.Random, words: int = 0) -> dict[str, float]:
    """Batches of 500 requests by the shipper's own COPY: requests a second, and its seconds of CPU for each."""
    made = [made_requests(500, start + timedelta(seconds=batch), rng, words) for batch in range(batches)]
    began, cpu = time.perf_counter(), time.process_time()
    for rows in made:
        with connection.transaction():
            for table in TABLES:
                copy_rows(connection, table, rows[table])
    wall, used = time.perf_counter() - began, time.process_time() - cpu
    return {
        "requests_per_second": round(500 * batches / wall),
        "client_cpu_ms": round(1000 * used / (500 * batches), 3),
    }


def reads(engine: Engine, connection: Connection, rng: random.Random, times: int = 30) -> dict[str, float]:
    """Milliseconds (medians): the newest page, a page far back, one decision whole; and rows a second of an export."""
    ids = [str(row[0]) for row in connection.execute(
        "SELECT id FROM decision TABLESAMPLE SYSTEM (0.05) WHERE project_id = %s LIMIT 500", [PROJECT])]  # fmt: skip
    chosen = rng.sample(ids, min(times, len(ids)))
    newest = _median(lambda _: decisions_page(engine, PROJECT, DecisionFilter(), None, 50), chosen)
    deep = _median(lambda identity: decisions_page(engine, PROJECT, DecisionFilter(), identity, 50), chosen)
    whole = _median(lambda identity: decision_record(engine, PROJECT, identity), chosen)
    began, rows = time.perf_counter(), 0
    for page in pages(engine, subject("decisions"), Selection(PROJECT)):
        rows += len(page)
        if rows >= 40_000:
            break
    return {"newest_page_ms": newest, "deep_page_ms": deep, "one_decision_ms": whole,
            "export_rows_per_second": round(rows / (time.perf_counter() - began))}  # fmt: skip


def new_month(engine: Engine, month: datetime) -> float:
    """Seconds to make a month's partitions: the default one is looked through for rows of it, under a lock."""
    began = time.perf_counter()
    with engine.begin() as connection:
        ensure_partitions(connection, month, 0)
    return round(time.perf_counter() - began, 3)


def drop(
    engine: Engine, connection: Connection, other: Connection, now: datetime, rng: random.Random
) -> dict[str, Any]:
    """Drops what is expired at `now` while another connection writes; the slowest write before and meanwhile."""
    writes: list[tuple[float, float]] = []
    done = threading.Event()

    def write() -> None:
        number = 0
        while not done.is_set():
            rows = made_requests(20, now + timedelta(seconds=number), rng)
            began = time.perf_counter()
            with other.transaction():
                for table in TABLES:
                    copy_rows(other, table, rows[table])
            writes.append((began, time.perf_counter() - began))
            number += 1

    with engine.connect() as reader:
        before = sum(size.bytes for size in partition_sizes(reader))
    writer = threading.Thread(target=write)
    writer.start()
    time.sleep(3)
    began = time.perf_counter()
    names = drop_expired(engine, connection, now, 90)
    ended = time.perf_counter()
    time.sleep(0.5)
    done.set()
    writer.join()
    with engine.connect() as reader:
        after = sum(size.bytes for size in partition_sizes(reader))
    calm = [took for at, took in writes if at < began - 0.2]
    meanwhile = [took for at, took in writes if at + took >= began and at <= ended]
    return {"partitions_dropped": len(names), "drop_seconds": round(ended - began, 3),
            "freed_megabytes": round((before - after) / 1e6), "requests_written_meanwhile": 20 * len(writes),
            "write_ms_before": round(1000 * statistics.median(calm), 1),
            "slowest_write_ms_before": round(1000 * max(calm), 1),
            "slowest_write_ms_meanwhile": round(1000 * max(meanwhile, default=0), 1)}  # fmt: skip


def counted(engine: Engine) -> dict[str, int]:
    """Rows by table."""
    with engine.connect() as connection:
        return {
            name: int(connection.execute(select(func.count()).select_from(METADATA.tables[name])).scalar_one())
            for name in TABLES
        }


def _median(act: Any, over: list[str]) -> float:
    took = []
    for identity in over:
        began = time.perf_counter()
        act(identity)
        took.append(1000 * (time.perf_counter() - began))
    return round(statistics.median(took), 2)


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}
