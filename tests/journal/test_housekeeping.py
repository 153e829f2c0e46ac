"""Feedback joins what it is about when that arrives, within its project, and goes if it never does."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine

from pointsman.database.copy import copy_rows
from pointsman.database.engine import psycopg_url
from pointsman.ids import new_id
from pointsman.journal.housekeeping import UNJOINED_FOR, join_feedback, keep_house, sweep_feedback

MINE, OTHERS = new_id(), new_id()
NOW = datetime.now(UTC)


@pytest.fixture
def connection(empty_database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(psycopg_url(empty_database), autocommit=True) as opened:
        yield opened


def put(connection: psycopg.Connection[Any], table: str, **row: Any) -> str:
    identity = new_id()
    with connection.transaction():
        assert copy_rows(connection, table, [{"id": identity, "project_id": MINE} | row]) == 1
    return identity


def feedback(connection: psycopg.Connection[Any], created_at: datetime = NOW, **about: Any) -> str:
    return put(connection, "feedback", metric="score", value=1, created_at=created_at, **about)


def joined(connection: psycopg.Connection[Any]) -> dict[str, tuple[bool, str | None]]:
    rows = connection.execute("SELECT id::text, joined, decision_id::text FROM feedback")
    return {row[0]: (row[1], row[2]) for row in rows}


def test_each_kind_joins_when_its_row_is_there_and_belongs_to_the_project(
    connection: psycopg.Connection[Any],
) -> None:
    decision = put(connection, "decision", request_id=new_id(), decided_at=NOW, eligible={})
    theirs = put(connection, "decision", request_id=new_id(), decided_at=NOW, eligible={}, project_id=OTHERS)
    episode = put(connection, "episode", source="new", started_at=NOW)
    call = {"worker": "w", "status": "ok", "started_at": NOW, "completion_id": "c1"}
    put(connection, "call", decision_id=decision, **call)
    by_decision = feedback(connection, decision_id=decision)
    by_completion = feedback(connection, completion_id="c1")
    by_episode = feedback(connection, episode_id=episode)
    foreign = [
        feedback(connection, decision_id=theirs),
        feedback(connection, completion_id="c1", project_id=OTHERS),
        feedback(connection, episode_id=episode, project_id=OTHERS),
        feedback(connection, completion_id="c2"),
    ]
    assert join_feedback(connection) == 3
    found = joined(connection)
    assert found[by_decision] == (True, decision)
    assert found[by_completion] == (True, decision)
    assert found[by_episode] == (True, None)
    assert not any(found[identity][0] for identity in foreign)
    assert join_feedback(connection) == 0
    put(connection, "call", decision_id=decision, **call | {"completion_id": "c2"})
    assert join_feedback(connection) == 1


def test_only_what_waited_in_vain_is_swept_and_only_from_a_drained_journal(
    connection: psycopg.Connection[Any], engine: Engine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    long_ago = NOW - UNJOINED_FOR - timedelta(minutes=1)
    lost, known = new_id(), put(connection, "decision", request_id=new_id(), decided_at=NOW, eligible={})
    vain = feedback(connection, long_ago, decision_id=lost)
    kept = {feedback(connection, decision_id=new_id()), feedback(connection, long_ago, decision_id=known)}
    join_feedback(connection)
    keep_house(engine, connection, tmp_path, NOW, 90, drained=False)
    assert set(joined(connection)) == kept | {vain}
    caplog.set_level("WARNING", "pointsman.shipper")
    keep_house(engine, connection, tmp_path, NOW, 90, drained=True)
    assert set(joined(connection)) == kept
    assert f"feedback {vain} named {lost}, which never came; swept" in caplog.text
    assert sweep_feedback(connection, NOW) == 0
