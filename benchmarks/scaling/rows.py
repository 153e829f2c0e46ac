"""Rows of a log as traffic makes them, narrow (no texts) or with texts of a given size; and a fill made by the server.

A request is four rows: request, decision, call, outcome.
"""

from __future__ import annotations

import random
import string
from datetime import datetime, timedelta
from typing import Any

import psycopg

from pointsman.hashing import text_hash
from pointsman.ids import content_id, id_at

PROJECT = content_id("project", "scale")
ROUTER = content_id("router_version", "harness", "f" * 64)
WORKERS = ("atlas", "brook", "cinder", "dune")
HASHES = {"pool_hash": "a" * 64, "cards_hash": "b" * 64, "template_hash": "c" * 64}
TABLES = ("request", "decision", "call", "outcome")
BATCH = 200_000

# A UUIDv7 of a time and a number, made by the server: the time, the version, then bits of a hash.
_FUNCTIONS = """
CREATE OR REPLACE FUNCTION pg_temp.moment(n bigint, total bigint, start timestamptz, span interval)
RETURNS timestamptz LANGUAGE sql AS $$ SELECT start + span * (n::float8 / total) $$;
CREATE OR REPLACE FUNCTION pg_temp.id(n bigint, moment timestamptz) RETURNS uuid LANGUAGE sql AS $$
    SELECT (lpad(to_hex((extract(epoch FROM moment) * 1000)::bigint), 12, '0')
            || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid $$;
CREATE OR REPLACE FUNCTION pg_temp.worker(n bigint) RETURNS text LANGUAGE sql AS
    $$ SELECT (ARRAY['atlas', 'brook', 'cinder', 'dune'])[1 + n % 4] $$;
CREATE TEMP TABLE IF NOT EXISTS made (n bigint, moment timestamptz, id uuid);
"""
_NUMBERS = """
INSERT INTO made SELECT n, at, pg_temp.id(n, at) FROM (
    SELECT n, pg_temp.moment(n, %(total)s, %(start)s, %(span)s) AS at FROM generate_series(%(low)s::bigint, %(high)s) n
) AS numbered
"""
_FILL = {
    "request": """
        INSERT INTO request (id, project_id, episode_id, received_at, model, text_hash)
        SELECT id, %(project)s, id, moment, 'pointsman', md5(n::text) || md5(n::text) FROM made""",
    "decision": """
        INSERT INTO decision (id, project_id, request_id, episode_id, decided_at, router_version_id, router_kind,
            template_hash, cards_hash, pool_hash, card_order, eligible, scores, probabilities, chosen, propensity,
            draw, parse_status, router_input_tokens, router_output_tokens, router_cost, router_ms)
        SELECT id, %(project)s, id, id, moment, %(router)s, 'harness', %(template)s, %(cards)s, %(pool)s,
            ARRAY['atlas', 'brook', 'cinder', 'dune'],
            '{"atlas": null, "brook": null, "cinder": null, "dune": null}',
            jsonb_build_object('atlas', -1.25, 'brook', -0.5 - n %% 7, 'cinder', -3.5, 'dune', -2.25),
            '{"atlas": 0.0125, "brook": 0.9625, "cinder": 0.0125, "dune": 0.0125}', pg_temp.worker(n), 0.9625,
            '[0.4217]', 'ok', 310, 1, 0.000021, 20 + n %% 70 FROM made""",
    "call": """
        INSERT INTO call (id, project_id, decision_id, request_id, worker, endpoint_hash, card_hash, price_hash,
            started_at, provider_model, completion_id, finish_reason, status, http_status, input_tokens,
            output_tokens, cost, first_token_ms, latency_ms)
        SELECT id, %(project)s, id, id, pg_temp.worker(n), %(template)s, %(cards)s, %(pool)s, moment, 'atlas-1',
            'chatcmpl-' || md5(n::text), 'stop', 'ok', 200, 200 + n %% 900, 80, 0.0011, 210 + n %% 90, 800 + n %% 400
        FROM made""",
    "outcome": """
        INSERT INTO outcome (id, project_id, decision_id, episode_id, status, worker, http_status, calls, cost,
            first_token_ms, latency_ms, overhead_ms, ended_at)
        SELECT id, %(project)s, id, id, 'ok', pg_temp.worker(n), 200, 1, 0.0011, 210 + n %% 90, 800 + n %% 400, 1.1,
            moment + interval '1 s' FROM made""",
}


def fill(connection: psycopg.Connection[Any], requests: int, start: datetime, span: timedelta) -> None:
    """`requests` narrow requests (four rows each), evenly over `span`, in transactions of `BATCH`."""
    values = {
        "start": start, "span": span, "total": requests, "project": PROJECT, "router": ROUTER,
        "template": HASHES["template_hash"], "cards": HASHES["cards_hash"], "pool": HASHES["pool_hash"],
    }  # fmt: skip
    connection.execute(_FUNCTIONS)
    for low in range(0, requests, BATCH):
        connection.execute("TRUNCATE made")
        connection.execute(_NUMBERS, {**values, "low": low, "high": min(low + BATCH, requests) - 1})
        for table in TABLES:
            connection.execute(_FILL[table], values)


def made_requests(number: int, start: datetime, rng: random.Random, words: int = 0) -> dict[str, list[dict[str, Any]]]:
    """The rows of `number` requests, a millisecond apart, as a gateway journals them; `words` in ask and answer."""
    rows: dict[str, list[dict[str, Any]]] = {table: [] for table in TABLES}
    for n in range(number):
        moment = start + timedelta(milliseconds=n)
        identity = id_at(moment, rng.randbytes(10))
        ask, answer = (text(rng, words), text(rng, words)) if words else (None, None)
        base = {"id": identity, "project_id": PROJECT}
        shown = {"messages": [{"role": "user", "content": ask}]} if ask else None
        rows["request"].append({
            **base, "episode_id": identity, "received_at": moment, "model": "pointsman", "text": ask,
            "text_hash": text_hash(ask or identity), "body": shown,
        })  # fmt: skip
        rows["decision"].append({
            **base, **HASHES, "request_id": identity, "episode_id": identity, "decided_at": moment,
            "router_version_id": ROUTER, "router_kind": "harness", "card_order": list(WORKERS),
            "eligible": dict.fromkeys(WORKERS), "scores": {worker: round(-rng.random(), 4) for worker in WORKERS},
            "probabilities": {worker: 0.9625 if worker == "brook" else 0.0125 for worker in WORKERS}, "chosen": "brook",
            "propensity": 0.9625, "draw": [round(rng.random(), 6)], "parse_status": "ok", "router_input_tokens": 310,
            "router_output_tokens": 1, "router_cost": "0.000021", "router_ms": 40.5,
        })  # fmt: skip
        rows["call"].append({
            **base, "decision_id": identity, "request_id": identity, "worker": "brook", "endpoint_hash": "d" * 64,
            "card_hash": "e" * 64, "price_hash": "f" * 64, "started_at": moment, "provider_model": "brook-1",
            "completion": answer, "completion_id": f"chatcmpl-{identity}", "finish_reason": "stop", "status": "ok",
            "http_status": 200, "input_tokens": 300, "output_tokens": 80, "cost": "0.0011", "first_token_ms": 210.0,
            "latency_ms": 810.0,
        })  # fmt: skip
        rows["outcome"].append({
            **base, "decision_id": identity, "episode_id": identity, "status": "ok", "worker": "brook",
            "http_status": 200, "calls": 1, "cost": "0.0011", "first_token_ms": 210.0, "latency_ms": 810.0,
            "overhead_ms": 1.1, "ended_at": moment,
        })  # fmt: skip
    return rows


def text(rng: random.Random, words: int) -> str:
    """Words of a vocabulary of 4,000, about six characters each: they compress as prose does, or somewhat worse."""
    vocabulary = _vocabulary()
    return " ".join(rng.choices(vocabulary, k=words))


def _vocabulary() -> list[str]:
    if not _WORDS:
        rng = random.Random(0)
        _WORDS.extend("".join(rng.choices(string.ascii_lowercase, k=rng.randint(2, 9))) for _ in range(4_000))
    return _WORDS


_WORDS: list[str] = []
