"""At 15,000 decisions over four months, a page of a time range touches one month's partition, by index."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine
from sqlalchemy.dialects import postgresql

from pointsman.database.partitions import ensure_partitions, partition_name
from pointsman.queries import DecisionFilter
from pointsman.queries.decisions import page_query

UNTIL = datetime(2024, 9, 28, tzinfo=UTC)
SINCE = datetime(2024, 9, 10, tzinfo=UTC)
RANGE = {"since": SINCE, "until": SINCE + timedelta(days=2)}


@pytest.fixture(scope="module")
def seeded(empty, engine, database_url, seeding):
    empty()
    with engine.begin() as connection:
        ensure_partitions(connection, datetime(2024, 6, 1, tzinfo=UTC), ahead=3)
    yield seeding.seed(database_url, until=UNTIL, number=15_000, spread=timedelta(days=110))
    empty()


def plan(engine: Engine, query) -> str:
    compiled = query.compile(dialect=postgresql.psycopg.dialect())
    with engine.connect() as connection:
        explain = f"EXPLAIN (ANALYZE, COSTS OFF) {compiled}"
        lines = connection.exec_driver_sql(explain, compiled.params)
        return "\n".join(line for (line,) in lines)


def months(text: str, table: str) -> set[str]:
    starts = [datetime(2024, month, 1, tzinfo=UTC) for month in (6, 7, 8, 9)]
    names = [partition_name(table, start) for start in starts] + [f"{table}_default"]
    return {name for name in names if f"on {name} " in text}


@pytest.mark.parametrize("operator", [False, True])
def test_a_time_range_prunes_to_one_partition_and_uses_an_index(engine, seeded, operator):
    project = None if operator else seeded.project
    text = plan(engine, page_query(project, DecisionFilter(**RANGE), None, 51))
    assert months(text, "decision") == {"decision_2024_09"}
    assert "Seq Scan" not in text
    assert "Index" in text


def test_filters_on_the_outcome_prune_both_tables(engine, seeded):
    filters = DecisionFilter(**RANGE, status="timeout", min_latency_ms=10)
    text = plan(engine, page_query(seeded.project, filters, None, 51))
    assert months(text, "decision") == {"decision_2024_09"}
    assert months(text, "outcome") == {"outcome_2024_09"}
    assert "Seq Scan" not in text


def test_text_search_uses_its_index(engine, seeded):
    filters = DecisionFilter(since=datetime(2024, 9, 2, tzinfo=UTC), search='"question 13333"')
    text = plan(engine, page_query(seeded.project, filters, None, 51))
    assert "Bitmap Index Scan on request_2024_09_to_tsvector_idx" in text, text
    assert months(text, "request") == {"request_2024_09", "request_default"}
    assert "Seq Scan on request_2024_09" not in text, text


def test_a_deep_page_reads_no_more_than_a_page(engine, seeded):
    cursor = seeded.decisions[2_000]["id"]
    text = plan(engine, page_query(seeded.project, DecisionFilter(), cursor, 51))
    assert "Seq Scan" not in text
    assert "Sort Method" not in text, text  # rows come in order from the index, partition by partition
