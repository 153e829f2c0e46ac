"""A large log by SQL: thirty days of traffic with requests, decisions, outcomes, calls of the newest, and feedback.

Made inside PostgreSQL (18, for `uuidv7`), in batches, each with its own seed: the same rows but for their ids.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
from sqlalchemy import Engine

from pointsman.database.engine import psycopg_url
from pointsman.database.partitions import ensure_partitions
from pointsman.identity import ensure_project

BATCH = 100_000
DAYS = 30
CALLED = 50_000
"""The newest decisions have calls too."""
WORKERS = ("atlas", "brook", "cinder", "dune")

_IDS = """
CREATE TEMP TABLE seeded AS
SELECT n, uuidv7(-interval '30 days' * (1 - n / %(total)s::float)) AS id,
    uuidv7(-interval '30 days' * (1 - n / %(total)s::float)) AS request_id,
    md5('episode' || n / 3)::uuid AS episode_id, random() AS a, random() AS b, random() AS c, random() AS d
FROM generate_series(%(start)s::bigint, %(stop)s::bigint - 1) AS n
"""
_STEPS = (
    """
    INSERT INTO request (id, project_id, episode_id, received_at, model, text, text_hash, tags)
    SELECT request_id, %(project)s, episode_id, uuid_extract_timestamp(request_id), 'pointsman', t, md5(t),
        CASE WHEN a < 0.3 THEN ARRAY[(ARRAY['mathematics', 'code', 'letters'])[1 + floor(b * 2.99)::int]] END
    FROM seeded, LATERAL (SELECT 'Question ' || n || ' about ' || (ARRAY['rivers', 'sums of integers', 'a letter in
        French', 'sorting a list in Python', 'the weather of the north', 'taxes'])[1 + floor(c * 5.99)::int]
        || repeat(' with some more words to read', floor(d * 20)::int) AS t) AS asked
    """,
    """
    INSERT INTO decision (id, project_id, request_id, episode_id, turn, decided_at, router_version_id, router_kind,
        eligible, scores, probabilities, chosen, propensity, explored, pattern, router_cost)
    SELECT id, %(project)s, request_id, episode_id, n %% 3, uuid_extract_timestamp(id), md5('version')::uuid,
        CASE WHEN b < 0.9 THEN 'harness' ELSE 'rule' END,
        '{"atlas": null, "brook": null, "cinder": null, "dune": null}',
        '{"atlas": -1.1, "brook": -0.4, "cinder": -2.0, "dune": -3.0}',
        '{"atlas": 0.0125, "brook": 0.9625, "cinder": 0.0125, "dune": 0.0125}',
        (ARRAY['brook', 'atlas', 'cinder', 'dune'])[1 + floor(a * a * 3.99)::int],
        CASE WHEN a < 0.5 THEN 0.9625 ELSE 0.0125 END, a > 0.9,
        CASE WHEN d < 0.97 THEN 'single' ELSE 'trinity' END, 0.00002
    FROM seeded
    """,
    """
    INSERT INTO outcome (id, project_id, decision_id, episode_id, status, worker, calls, cost, latency_ms, overhead_ms,
        ended_at)
    SELECT id, %(project)s, id, episode_id,
        (ARRAY['ok', 'upstream_error', 'timeout', 'truncated'])[1 + greatest(0, floor(b * 34)::int - 30)],
        (ARRAY['brook', 'atlas', 'cinder', 'dune'])[1 + floor(a * a * 3.99)::int], 1, 0.0001 + c * 0.01,
        exp(6 + 1.2 * d), 0.2 + 2 * d, uuid_extract_timestamp(id) + interval '1 second'
    FROM seeded
    """,
    """
    INSERT INTO feedback (id, project_id, decision_id, metric, value, created_at)
    SELECT uuidv7(-interval '30 days' * (1 - n / %(total)s::float)), %(project)s, id, 'correct',
        to_jsonb(c < 0.8), uuid_extract_timestamp(id)
    FROM seeded WHERE n %% 10 = 0
    """,
    """
    INSERT INTO call (id, project_id, decision_id, request_id, worker, started_at, status, completion, input_tokens,
        output_tokens, cost, latency_ms)
    SELECT uuidv7(-interval '30 days' * (1 - n / %(total)s::float)), %(project)s, id, request_id,
        (ARRAY['brook', 'atlas', 'cinder', 'dune'])[1 + floor(a * a * 3.99)::int], uuid_extract_timestamp(id), 'ok',
        'An answer to question ' || n, 300, 120, 0.0001 + c * 0.01, exp(6 + 1.2 * d)
    FROM seeded WHERE n >= %(total)s - %(called)s
    """,
)


def seed(engine: Engine, url: str, rows: int, seed_number: int) -> str:
    """Writes `rows` decisions of traffic up to now; the project's id."""
    now = datetime.now(UTC)
    with engine.begin() as connection:
        project = ensure_project(connection)
        for days in (DAYS + 1, 0):
            ensure_partitions(connection, now - timedelta(days=days))
    with psycopg.connect(psycopg_url(url), autocommit=True) as connection:
        connection.execute(
            "INSERT INTO router_version (id, kind, artifact_hash, config, state, created_at)"
            " VALUES (md5('version')::uuid, 'harness', md5('version'), '{\"template\": \"default\"}', 'serving', now())"
        )
        for start in range(0, rows, BATCH):
            values = {
                "start": start, "stop": min(start + BATCH, rows), "total": rows, "called": CALLED, "project": project
            }  # fmt: skip
            connection.execute("SELECT setseed(%s)", [((seed_number * 7919 + start // BATCH) % 1000) / 1000])
            connection.execute(_IDS, values)
            for step in _STEPS:
                connection.execute(step, values)
            connection.execute("DROP TABLE seeded")
        connection.execute("ANALYZE")
    return project
