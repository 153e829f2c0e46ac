"""Filling the hourly sums: new hours, and again those that have changed since.

An hour is taken when it is over and `SETTLE` has passed; the last `AGAIN` before the mark are taken again each time
(outcomes come late), and so are the hours of decisions that got a word since. One transaction an hour: a run that
dies goes on where it was, and readers never see half an hour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, DateTime, Engine, Select, Table, column, delete, func, literal, select, text
from sqlalchemy.dialects.postgresql import insert

from pointsman.ids import lowest_id, time_of
from pointsman.rollups.sums import SHARES, SPREAD, TRAFFIC, WORDS
from pointsman.tables import METADATA

NAME = "overview"
HOUR = timedelta(hours=1)
SETTLE = timedelta(minutes=2)
AGAIN = timedelta(hours=3)
OVERLAP = timedelta(minutes=10)  # a word may reach Postgres so long after its id was made

HOURS = METADATA.tables["rollup_hour"]
SPREADS = METADATA.tables["rollup_spread"]
SPOKEN = METADATA.tables["rollup_word"]
SHARED = METADATA.tables["rollup_share"]
MARK = METADATA.tables["rollup_mark"]

_FIRST = text("SELECT id FROM decision WHERE origin = 'traffic' ORDER BY id LIMIT 1")
_CHANGED = text("""
SELECT decision_id AS id FROM feedback WHERE id >= CAST(:low AS uuid) AND decision_id IS NOT NULL
UNION
SELECT d.id FROM feedback f JOIN decision d ON d.episode_id = f.episode_id AND d.project_id = f.project_id
WHERE f.id >= CAST(:low AS uuid) AND f.decision_id IS NULL
""")
_SUMMED = (
    "decisions", "own_ok", "begun", "explored", "unknown_cost", "cost", "router_cost", "drawn", "drawn_cost", "weight",
    "weight_cost",
)  # fmt: skip
_ALIKE = ("project_id", "worker", "router_kind", "status", "forced")


@dataclass(frozen=True)
class Filled:
    """What a run did: hours taken for the first time and again, and how far the sums reach now."""

    new: int
    again: int
    until: datetime | None


def floor_hour(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def refresh(engine: Engine, now: datetime, progress: Callable[[int, int], None] = lambda done, total: None) -> Filled:
    """Brings the sums up to the last whole hour. Two runs at once are one: the second waits for each hour's lock."""
    with engine.connect() as connection:
        mark = read_mark(connection)
        first = mark.until if mark else _first(connection)
        changed = _changed(connection, mark) if mark else set()
    if first is None:
        return Filled(0, 0, None)
    end = floor_hour(now - SETTLE)
    new = list(_hours(first, end))
    again = sorted(changed - set(new))
    for done, hour in enumerate([*again, *new], start=1):
        _fill(engine, hour, hour + HOUR if hour in new else None)
        progress(done, len(again) + len(new))
    until = max(first, end)
    with engine.begin() as connection:
        _set_mark(connection, until, now)
    return Filled(len(new), len(again), until)


def read_mark(connection: Connection) -> Any | None:
    """How far the sums reach; None where they were never made."""
    return connection.execute(MARK.select().where(MARK.c.name == NAME)).first()


def _first(connection: Connection) -> datetime | None:
    found = connection.scalar(_FIRST)
    return None if found is None else floor_hour(time_of(str(found)))


def _changed(connection: Connection, mark: Any) -> set[datetime]:
    """Hours before the mark that may read otherwise by now."""
    low = lowest_id(mark.words_until - OVERLAP)
    spoken = {floor_hour(time_of(str(row.id))) for row in connection.execute(_CHANGED, {"low": low})}
    late = set(_hours(mark.until - AGAIN, mark.until))
    return {hour for hour in spoken | late if hour < mark.until}


def _hours(start: datetime, end: datetime) -> Iterable[datetime]:
    hour = start
    while hour < end:
        yield hour
        hour += HOUR


def _fill(engine: Engine, hour: datetime, until: datetime | None) -> None:
    values = {"hour": hour, "low": lowest_id(hour), "high": lowest_id(hour + HOUR), "project": None}
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('pointsman rollup'))"))
        for table, sums in (
            (HOURS, _traffic()),
            (SPREADS, _plain(SPREAD, SPREADS)),
            (SPOKEN, _plain(WORDS, SPOKEN)),
            (SHARED, _plain(SHARES, SHARED)),
        ):
            connection.execute(delete(table).where(table.c.hour == hour))
            at = literal(hour, DateTime(timezone=True))
            columns = list(sums.selected_columns)
            names = ["hour", *(one.name for one in columns)]
            connection.execute(insert(table).from_select(names, sums.with_only_columns(at, *columns)), values)
        if until is not None:
            _set_mark(connection, until, None)


def _traffic() -> Select[Any]:
    """The hour in one row for each of its kinds, whatever hour `decided_at` says: a decision is dated by its id."""
    found = text(TRAFFIC).columns(*(column(name) for name in (*_ALIKE, *_SUMMED))).subquery("t")
    alike = [found.c[name] for name in _ALIKE]
    return select(*alike, *(func.sum(found.c[name]).label(name) for name in _SUMMED)).group_by(*alike)


def _plain(sql: str, table: Table) -> Select[Any]:
    names = [one.name for one in table.columns if one.name != "hour"]
    found = text(sql).columns(*(column(name) for name in names)).subquery("t")
    return select(*(found.c[name] for name in names))


def _set_mark(connection: Connection, until: datetime, words_until: datetime | None) -> None:
    """Forward only; `words_until` None leaves what is there."""
    made = insert(MARK).values(name=NAME, until=until, words_until=words_until or until)
    changed: dict[str, Any] = {"until": until}
    if words_until is not None:
        changed["words_until"] = words_until
    connection.execute(made.on_conflict_do_update(index_elements=["name"], set_=changed, where=MARK.c.until <= until))
