"""What the shipper does beside shipping: joins feedback to its decision, keeps partitions, drops what is too old."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy import Engine, text
from sqlalchemy.exc import OperationalError

from pointsman.database.partitions import ensure_partitions, expired
from pointsman.ids import lowest_id
from pointsman.journal.folder import sweep_hidden
from pointsman.journal.rejected import expire
from pointsman.tables import PARTITIONED

UNJOINED_FOR = timedelta(days=1)  # longer than any journal should wait: its decision may be in another machine's
LOCK_WAIT = "1s"
"""Whoever comes after a waiting lock waits behind it: this is the longest that serving may stand still."""

log = logging.getLogger("pointsman.shipper")

# Feedback by completion id finds its decision through the call that carried it; the Messages surface
# shows `msg_` before it.
_BY_COMPLETION = """
UPDATE feedback SET decision_id = call.decision_id, joined = true
FROM call
WHERE NOT feedback.joined AND feedback.decision_id IS NULL AND feedback.completion_id IS NOT NULL
  AND call.completion_id IN (feedback.completion_id, substring(feedback.completion_id FROM '^msg_(.*)$'))
  AND call.project_id = feedback.project_id
"""
_BY_DECISION = """
UPDATE feedback SET joined = true
WHERE NOT joined AND decision_id IS NOT NULL AND EXISTS (
    SELECT FROM decision WHERE decision.id = feedback.decision_id AND decision.project_id = feedback.project_id)
"""
_BY_EPISODE = """
UPDATE feedback SET joined = true
WHERE NOT joined AND episode_id IS NOT NULL AND EXISTS (
    SELECT FROM episode WHERE episode.id = feedback.episode_id AND episode.project_id = feedback.project_id)
"""

# Traffic in the default partitions, which are never dropped.
_OLD_STRAYS = (
    "DELETE FROM outcome_default WHERE id < %s AND origin = 'traffic'",
    "DELETE FROM call_default WHERE id < %s AND purpose <> 'replay'",
    "DELETE FROM decision_default WHERE id < %s AND origin IN ('traffic', 'dry_run')",
    "DELETE FROM request_default WHERE id < %s"
    " AND NOT EXISTS (SELECT FROM decision WHERE decision.request_id = request_default.id)",
)
# An episode that began long ago may still be going on.
_OLD_EPISODES = """
DELETE FROM episode WHERE started_at < %s
  AND NOT EXISTS (SELECT FROM decision WHERE decision.episode_id = episode.id)
"""


def join_feedback(connection: psycopg.Connection[Any]) -> int:
    """Marks feedback whose decision or episode has arrived; returns how many."""
    with connection.transaction(), connection.cursor() as cursor:
        joined = 0
        for statement in (_BY_COMPLETION, _BY_DECISION, _BY_EPISODE):
            cursor.execute(statement)
            joined += cursor.rowcount
        return joined


def sweep_feedback(connection: psycopg.Connection[Any], now: datetime) -> int:
    """Removes feedback whose decision never came; each is named in the log."""
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM feedback WHERE NOT joined AND created_at < %s RETURNING id, decision_id, completion_id",
            [now - UNJOINED_FOR],
        )
        swept = cursor.fetchall()
    for identity, decision, completion in swept:
        log.warning("feedback %s named %s, which never came; swept", identity, decision or completion)
    return len(swept)


def keep_partitions(engine: Engine, now: datetime) -> None:
    """The coming months' partitions, made ahead of time. Gives way to a long read; the next round tries again."""
    for table in PARTITIONED:
        with engine.begin() as connection:
            connection.execute(text("SELECT set_config('lock_timeout', :wait, true)"), {"wait": LOCK_WAIT})
            for name in ensure_partitions(connection, now, tables=(table,)):
                log.info("made partition %s", name)


def drop_expired(engine: Engine, connection: psycopg.Connection[Any], now: datetime, days: int) -> list[str]:
    """Retention: partitions wholly older than `days` are dropped, and older episodes and feedback deleted.

    Of the rows that no month's partition took, traffic goes; what was imported from long ago stays. A partition that
    is in use is left for the next time. Returns the names of those dropped.
    """
    cutoff = now - timedelta(days=days)
    with engine.connect() as reader:
        names = expired(reader, cutoff)
    dropped = [name for name in names if _drop(connection, name, days)]
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_WAIT])
        for statement in _OLD_STRAYS:
            cursor.execute(statement, [lowest_id(cutoff)])
        cursor.execute("DELETE FROM feedback WHERE created_at < %s", [cutoff])
        cursor.execute(_OLD_EPISODES, [cutoff])
    return dropped


def _drop(connection: psycopg.Connection[Any], name: str, days: int) -> bool:
    """Drops one partition, in a transaction of its own; False where it is in use.

    With the locks of two tables in one hand, it and whoever writes or joins the two would wait for each other.
    """
    try:
        with connection.transaction(), connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_WAIT])
            cursor.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(name)))
    except psycopg.errors.LockNotAvailable:
        log.info("partition %s is in use; it is dropped later", name)
        return False
    log.info("dropped partition %s: older than %d days", name, days)
    return True


def keep_house(
    engine: Engine, connection: psycopg.Connection[Any], root: Path, now: datetime, days: int, *, drained: bool
) -> None:
    """All of it. What is in use does not keep the others from their turn.

    Only where the journal is `drained` is feedback swept: after an outage its decision may still be in there.
    """
    sweep_hidden(root, now.timestamp())
    expire(root, now - timedelta(days=days))
    try:
        keep_partitions(engine, now)
    except OperationalError as error:
        if not isinstance(error.orig, psycopg.errors.LockNotAvailable):
            raise
        log.info("partitions are in use; they are made later")
    if drained:
        sweep_feedback(connection, now)
    try:
        drop_expired(engine, connection, now, days)
    except psycopg.errors.LockNotAvailable:
        log.info("old rows are in use; they are deleted later")
