"""Faults that were reported of other gateways' logs: each tried here, with the right value."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text


def test_a_lone_surrogate_of_a_model_reads_alike_from_memory_from_postgres_and_in_an_export(gateway, upstream, fake):
    upstream.script("m-alpha", fake.reply(b'{"choices":[{"message":{"content":"\\ud83d!"},"finish_reason":"stop"}]}'))
    answer = gateway.chat("x")
    assert answer.status_code == 200
    assert answer.json()["choices"][0]["message"]["content"] == "\ufffd!"
    identity = answer.headers["x-pointsman-decision-id"]
    early = gateway.client.get(f"/v1/decisions/{identity}").json()["calls"][0]["completion"]
    stored = gateway.record(answer)["calls"][0]["completion"]
    assert (early, stored) == ("\ufffd!", "\ufffd!")
    exported = json.dumps(gateway.record(answer), default=str, ensure_ascii=False).encode()
    assert "\ufffd!".encode() in exported


@pytest.mark.parametrize(
    ("said", "stored"), [("a\u0000b", "a\ufffdb"), ("a\\u0000b", "a\\u0000b"), ("\\\\u0000", "\\\\u0000")]
)
def test_nul_is_replaced_and_its_six_characters_are_left_alone(gateway, upstream, fake, said, stored):
    upstream.script("m-alpha", fake.reply(fake.completion(said)))
    answer = gateway.chat(said)
    assert answer.status_code == 200 and upstream.calls[0].json["messages"][0]["content"] == said
    assert answer.json()["choices"][0]["message"]["content"] == said
    record = gateway.record(answer)
    assert (record["request"]["text"], record["calls"][0]["completion"]) == (stored, stored)


def test_no_column_takes_json_that_cannot_be_read(engine):
    """`json` stores a NUL and fails when it is read; `jsonb` refuses it, and ours is cleaned before."""
    with engine.connect() as connection:
        plain = connection.execute(
            text("SELECT table_name, column_name FROM information_schema.columns WHERE data_type = 'json'")
        ).all()
    assert plain == []


@pytest.fixture
def in_india(monkeypatch):
    """This process's local time, half an hour off every other."""
    before = os.environ.get("TZ")
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    yield
    if before is None:
        monkeypatch.delenv("TZ")
    else:
        monkeypatch.setenv("TZ", before)
    time.tzset()


def test_times_are_moments_wherever_the_process_stands(gateway, upstream, in_india):
    assert time.strftime("%z") == "+0530"
    began = datetime.now(UTC)
    answer = gateway.chat("x")
    record = gateway.record(answer)
    moments = [record["decision"]["decided_at"], record["request"]["received_at"], record["calls"][0]["started_at"]]
    for moment in (*moments, record["outcome"]["ended_at"]):
        read = datetime.fromisoformat(moment)
        assert read.utcoffset() is not None
        assert began - timedelta(seconds=1) <= read <= datetime.now(UTC) + timedelta(seconds=1)


def test_connections_to_the_database_stay_few_under_load(gateway, upstream):
    """Requests, reads of decisions and look-ups of episodes at once: the pool is bounded and everything comes back."""
    pool = gateway.state.engine.pool

    def visit(number: int) -> int:
        answer = gateway.chat(
            messages=[
                {"role": "user", "content": f"opening {number}"},
                {"role": "assistant", "content": "yes"},
                {"role": "user", "content": "go on"},
            ]
        )
        identity = answer.headers["x-pointsman-decision-id"]
        assert pool.checkedout() <= 6
        return gateway.client.get(f"/v1/decisions/{identity}").status_code

    with ThreadPoolExecutor(16) as threads:
        assert set(threads.map(visit, range(150))) == {200}
    until = time.monotonic() + 10
    while pool.checkedout() and time.monotonic() < until:
        time.sleep(0.05)
    assert pool.checkedout() == 0
    open_now = gateway.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pointsman-gateway'")
    assert open_now[0][0] <= 12  # at most six of each gateway that this run still has
