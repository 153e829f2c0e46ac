"""The shipper on a real PostgreSQL: every row once, whatever dies in between, and what is refused is kept."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from pointsman.database.engine import psycopg_url
from pointsman.ids import id_at, new_id
from pointsman.journal.folder import Cursor, Folder, Lock, new_folder
from pointsman.journal.lines import Payload, encode_line
from pointsman.journal.rejected import REJECTED
from pointsman.journal.shipper import BATCH_LINES, Shipper

PROJECT = new_id()
NOW = datetime(2026, 11, 20, tzinfo=UTC)


LONG = "".join(new_id() for _ in range(800))  # too varied to be compressed into an index


class Dead:
    """A folder of a process that is no more."""

    def __init__(self, root: Path, name: str = "a") -> None:
        self.folder, lock = new_folder(root, name)
        lock.release()

    def write(self, *payloads: Payload, segment: int = 1, tail: bytes = b"") -> Dead:
        with self.folder.segment(segment).open("ab") as file:
            file.write(b"".join(map(encode_line, payloads)) + tail)
        return self


def decision(identity: str, **more: Any) -> tuple[str, dict[str, Any]]:
    base = {"id": identity, "project_id": PROJECT, "request_id": new_id(), "decided_at": NOW, "eligible": {}}
    return ("decision", base | more)


def outcome(identity: str, status: str = "ok", **more: Any) -> tuple[str, dict[str, Any]]:
    base = {"id": identity, "project_id": PROJECT, "decision_id": identity, "status": status, "ended_at": NOW}
    return ("outcome", base | more)


def feedback(identity: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return ("feedback", {"id": identity, "project_id": PROJECT, "metric": "m", "created_at": NOW} | more)


def whole(identity: str) -> list[Payload]:
    return [
        Payload([decision(identity)], (identity, PROJECT, None)),
        Payload([outcome(identity)], None, identity),
    ]


@pytest.fixture
def connect(empty_database: str) -> Callable[[], psycopg.Connection[Any]]:
    return lambda: psycopg.connect(psycopg_url(empty_database), autocommit=True)


@pytest.fixture
def ask(connect: Callable[[], psycopg.Connection[Any]]) -> Iterator[Callable[..., list[Any]]]:
    """Runs a query and gives its rows."""
    with connect() as connection:
        yield lambda query, *values: connection.execute(query, values or None).fetchall()


class Cuts:
    """Gives connections that end at the n-th statement, as if the server went away there."""

    def __init__(self, connect: Callable[[], psycopg.Connection[Any]], after_commit: bool = False) -> None:
        self._connect, self._after_commit = connect, after_commit
        self.left = 1

    def __call__(self) -> psycopg.Connection[Any]:
        connection = self._connect()
        if self.left:
            self.left -= 1
            pid = connection.execute("SELECT pg_backend_pid()").fetchone()
            assert pid is not None
            with self._connect() as other:
                other.execute("SELECT pg_terminate_backend(%s, 5000)", pid)
        return connection


def test_rows_arrive_once_and_the_folder_goes(tmp_path: Path, connect: Any, ask: Any) -> None:
    names = [new_id() for _ in range(BATCH_LINES + 20)]
    Dead(tmp_path).write(*(payload for name in names for payload in whole(name)))
    shipper = Shipper(tmp_path, connect)
    shipper.drain()
    assert ask("SELECT count(*), count(DISTINCT id) FROM decision") == [(len(names), len(names))]
    assert ask("SELECT status, count(*) FROM outcome GROUP BY 1") == [("ok", len(names))]
    assert (shipper.shipped, shipper.rejected, shipper.damaged) == (2 * len(names), 0, 0)
    assert list(tmp_path.iterdir()) == []
    shipper.close()


def test_a_crash_between_commit_and_cursor_sends_again_to_no_effect(tmp_path: Path, connect: Any, ask: Any) -> None:
    dead = Dead(tmp_path)
    lock = Lock.take(dead.folder.path / "writer.lock")  # alive: the folder stays
    names = [new_id() for _ in range(10)]
    dead.write(*(payload for name in names for payload in whole(name)))
    first = Shipper(tmp_path, connect)
    first.drain()
    first.close()
    (dead.folder.path / "cursor.json").unlink()  # what the crash did not come to
    second = Shipper(tmp_path, connect)
    second.drain()
    assert second.shipped == 20
    assert ask("SELECT count(*) FROM decision") == [(10,)]
    assert ask("SELECT count(*) FROM outcome") == [(10,)]
    second.close()
    assert lock is not None
    lock.release()


def test_segments_are_shipped_in_order_and_removed_once_a_later_one_exists(
    tmp_path: Path, connect: Any, ask: Any
) -> None:
    dead = Dead(tmp_path)
    lock = Lock.take(dead.folder.path / "writer.lock")
    names = [new_id() for _ in range(3)]
    for number, name in enumerate(names):
        dead.write(*whole(name), segment=number + 1)
    dead.write(segment=1, tail=b"0000000 torn")  # what a full disk cut off before the next was begun
    shipper = Shipper(tmp_path, connect)
    shipper.drain()
    assert dead.folder.segments() == [3]
    assert ask("SELECT count(*) FROM outcome") == [(3,)]
    assert dead.folder.cursor().segment == 3
    shipper.close()
    assert lock is not None
    lock.release()


def test_what_a_dead_process_left_open_is_abandoned_and_what_it_ended_is_not(
    tmp_path: Path, connect: Any, ask: Any
) -> None:
    earlier, ended, left = (id_at(NOW - timedelta(seconds=s)) for s in (90, 60, 30))
    dead = Dead(tmp_path)
    dead.write(Payload(open=[(earlier, PROJECT, None), (ended, PROJECT, None)]), *whole(ended), segment=4)
    dead.write(Payload([decision(left)], (left, PROJECT, None)), segment=4, tail=b"0123 half a li")
    shipper = Shipper(tmp_path, connect, lambda: NOW)
    shipper.drain()
    rows = ask("SELECT id::text, status, latency_ms, ended_at FROM outcome ORDER BY id")
    assert rows == [(earlier, "abandoned", 90_000, NOW), (ended, "ok", None, NOW), (left, "abandoned", 30_000, NOW)]
    assert list(tmp_path.iterdir()) == []
    shipper.close()


def test_a_shipper_that_starts_in_the_middle_knows_what_is_open(tmp_path: Path, connect: Any, ask: Any) -> None:
    dead = Dead(tmp_path)
    lock = Lock.take(dead.folder.path / "writer.lock")
    left, ended = new_id(), new_id()
    dead.write(Payload([decision(left)], (left, PROJECT, None)), *whole(ended))
    first = Shipper(tmp_path, connect)
    first.drain()
    assert ask("SELECT count(*) FROM outcome") == [(1,)]
    first.close()
    assert lock is not None
    lock.release()
    second = Shipper(tmp_path, connect)
    second.drain()
    assert dict(ask("SELECT id::text, status FROM outcome")) == {left: "abandoned", ended: "ok"}
    second.close()


def test_a_real_outcome_replaces_an_abandoned_one_and_never_the_reverse(tmp_path: Path, connect: Any, ask: Any) -> None:
    for first, second in (("abandoned", "ok"), ("ok", "abandoned"), ("ok", "truncated")):
        identity = new_id()
        for status in (first, second):
            Dead(tmp_path).write(Payload([outcome(identity, status, reason=status)]))
            shipper = Shipper(tmp_path, connect)
            shipper.drain()
            shipper.close()
        assert ask("SELECT status, reason FROM outcome WHERE id = %s", identity) == [("ok", "ok")]


def test_tables_are_filled_in_reading_order(tmp_path: Path, connect: Any, ask: Any) -> None:
    """An outcome is never there without its decision, however the lines stand."""
    identity, episode = new_id(), new_id()
    Dead(tmp_path).write(
        Payload([outcome(identity), decision(identity), feedback(new_id(), decision_id=identity)]),
        Payload(
            [
                ("episode", {"id": episode, "project_id": PROJECT, "source": "new", "started_at": NOW}),
                ("pool_snapshot", {"hash": "h", "content": {}, "created_at": NOW}),
            ]
        ),
    )
    shipper = Shipper(tmp_path, connect)
    shipper.drain()
    assert shipper.rejected == 0, (tmp_path / REJECTED).read_text()
    for table in ("decision", "outcome", "feedback", "episode"):
        assert ask(f"SELECT count(*) FROM {table}") == [(1,)]
    shipper.close()


HOSTILE: list[tuple[Any, Any]] = [
    ({"text": "a\x00b"}, {"text": "a\ufffdb"}),
    ({"text": "\ud83d"}, {"text": "\ufffd"}),
    ({"text": "literal \\u0000 stays"}, {"text": "literal \\u0000 stays"}),
    (msgspec.Raw(b'{"text": "\\\\u0000"}'), {"text": "\\u0000"}),
    (msgspec.Raw(b'{"text": "x\\u0000y", "lone": "\\ud83d"}'), {"text": "x\ufffdy", "lone": "\ufffd"}),
    (msgspec.Raw(b'{"n": NaN, "i": -Infinity, "e": 1e999}'), {"n": None, "i": None, "e": None}),
    ({"n": float("nan"), "i": float("inf")}, {"n": None, "i": None}),
    (msgspec.Raw(b'{"big": 1' + b"0" * 60 + b"}"), {"big": 10**60}),
    (msgspec.Raw(b'{"huge": 1' + b"0" * 5000 + b"}"), {"huge": None}),
    (msgspec.Raw(b'{"exact": 0.12345678901234567890123456789, "e": 1e5}'), None),
    (msgspec.Raw(b'{"a": "\xe2\x80\xa8\xf0\x9f\x98\x80"}'), {"a": "\u2028😀"}),
    (msgspec.Raw(b'{"a": "bad \xff utf-8"}'), {"a": "bad \ufffd utf-8"}),
    (msgspec.Raw(b'{\n "pretty": [\n1,\n2]\n}'), {"pretty": [1, 2]}),
    ("a string", "a string"),
    (True, True),
    (None, None),
    (msgspec.Raw(b"null"), None),
    (msgspec.Raw(b"1e999"), None),
]


def test_hostile_values_round_trip_as_far_as_postgres_can_hold_them(tmp_path: Path, connect: Any, ask: Any) -> None:
    names = [new_id() for _ in HOSTILE]
    lines = [Payload([feedback(name, value=value)]) for name, (value, _) in zip(names, HOSTILE, strict=True)]
    Dead(tmp_path).write(*lines)
    shipper = Shipper(tmp_path, connect)
    shipper.drain()
    assert (shipper.rejected, shipper.damaged) == (0, 0)
    stored = dict(ask("SELECT id::text, value FROM feedback"))
    for name, (value, expected) in zip(names, HOSTILE, strict=True):
        if expected is not None or name not in stored:
            assert stored[name] == expected, value
    exact = names[
        next(n for n, (v, _) in enumerate(HOSTILE) if b"exact" in bytes(v if isinstance(v, msgspec.Raw) else b""))
    ]
    assert ask("SELECT value->>'exact' FROM feedback WHERE id = %s", exact) == [("0.12345678901234567890123456789",)]
    assert ask("SELECT count(*) FROM feedback WHERE value = 'null'::jsonb") == [(0,)]  # SQL NULL, not JSON's
    shipper.close()


def test_deep_json_arrives_as_far_as_anyone_can_read_it(tmp_path: Path, connect: Any, ask: Any) -> None:
    good, deep, deeper = new_id(), new_id(), new_id()
    Dead(tmp_path).write(
        Payload([feedback(deep, value=msgspec.Raw(b"[" * 400 + b"1e5" + b"]" * 400))]),
        Payload([feedback(deeper, value=msgspec.Raw(b"[" * 50_000 + b"]" * 50_000))]),
        Payload([feedback(good)]),
    )
    shipper = Shipper(tmp_path, connect)
    shipper.drain()
    assert sorted(row[0] for row in ask("SELECT id::text FROM feedback")) == sorted([good, deep])
    assert (shipper.rejected, shipper.damaged) == (0, 1)
    assert deeper in (tmp_path / REJECTED).read_text()
    shipper.close()


def test_counts_and_money_beyond_their_columns_are_null_and_the_row_arrives(
    tmp_path: Path, connect: Any, ask: Any
) -> None:
    identity = new_id()
    Dead(tmp_path).write(Payload([outcome(identity, calls=2**40, http_status=-(2**31), cost="12345678901.5")]))
    odd = new_id()
    Dead(tmp_path, "b").write(Payload([outcome(odd, cost="NaN", calls=2**31 - 1, http_status=msgspec.Raw(b"1e999"))]))
    shipper = Shipper(tmp_path, connect)
    shipper.drain()
    assert shipper.rejected == 0
    assert ask("SELECT calls, http_status, cost FROM outcome WHERE id = %s", identity) == [(None, None, None)]
    assert ask("SELECT calls, http_status, cost FROM outcome WHERE id = %s", odd) == [(2**31 - 1, None, None)]
    shipper.close()


@pytest.mark.parametrize(
    ("poison", "sqlstate"),
    [
        (outcome("not-a-uuid"), "22P02"),
        (outcome(new_id(), "no such word"), "23514"),
        (("decision", {"id": new_id(), "eligible": {}}), "23502"),
        (outcome(new_id(), ended_at="the day before yesterday"), "22007"),
        # An index row too long: an error of the class that also says "out of disk", and never goes away.
        (("call", {"id": new_id(), "project_id": PROJECT, "decision_id": new_id(), "worker": "w", "status": "ok",
                   "started_at": NOW, "completion_id": LONG}), "54000"),
        (("no_such_table", {"id": new_id()}), None),
        (outcome(new_id(), no_such_column=1), None),
    ],
)  # fmt: skip
def test_a_refused_row_is_kept_apart_and_all_others_arrive(
    tmp_path: Path, connect: Any, ask: Any, poison: tuple[str, dict[str, Any]], sqlstate: str | None
) -> None:
    names = [new_id() for _ in range(41)]
    payloads = [payload for name in names for payload in whole(name)]
    payloads.insert(33, Payload([decision(names[-1]), poison, feedback(new_id())]))
    Dead(tmp_path).write(*payloads)
    shipper = Shipper(tmp_path, connect)
    shipper.drain()
    assert ask("SELECT count(*) FROM decision") == [(len(names),)]
    assert ask("SELECT count(*) FROM outcome") == [(len(names),)]
    assert ask("SELECT count(*) FROM feedback") == [(1,)]
    assert shipper.rejected == 1
    kept = [json.loads(line) for line in (tmp_path / REJECTED).read_text().splitlines()]
    assert [(entry["table"], entry["sqlstate"]) for entry in kept] == [(poison[0], sqlstate)]
    assert kept[0]["row"] == json.loads(msgspec.json.encode(poison[1]))
    shipper.close()


def test_a_schema_that_is_not_there_yet_refuses_no_row(tmp_path: Path, connect: Any, ask: Any) -> None:
    identity = new_id()
    Dead(tmp_path).write(*whole(identity))
    shipper = Shipper(tmp_path, connect)
    with connect() as other:
        other.execute("ALTER TABLE outcome RENAME TO outcome_elsewhere")
        try:
            with pytest.raises(psycopg.errors.UndefinedTable):
                shipper.ship()
        finally:
            other.execute("ALTER TABLE outcome_elsewhere RENAME TO outcome")
    assert shipper.rejected == 0 and not (tmp_path / REJECTED).exists()
    shipper.drain()
    assert ask("SELECT id::text, status FROM outcome") == [(identity, "ok")]
    shipper.close()


def test_a_connection_that_ends_in_the_middle_is_opened_again(tmp_path: Path, connect: Any, ask: Any) -> None:
    """57P01, then a dead socket: nothing is refused, nothing is sent twice."""
    names = [new_id() for _ in range(30)]
    Dead(tmp_path).write(*(payload for name in names for payload in whole(name)))
    shipper = Shipper(tmp_path, Cuts(connect))
    with pytest.raises(psycopg.OperationalError):
        shipper.ship()
    shipper.drain()
    assert ask("SELECT count(*) FROM outcome") == [(30,)]
    assert shipper.rejected == 0
    shipper.close()


def test_a_deadlock_is_tried_again(tmp_path: Path, connect: Any, ask: Any) -> None:
    identity = new_id()
    Dead(tmp_path).write(*whole(identity))

    def hasty() -> psycopg.Connection[Any]:
        connection = connect()
        connection.execute("SET lock_timeout = '100ms'")
        return connection

    shipper = Shipper(tmp_path, hasty)
    with connect() as other, other.transaction():
        other.execute("LOCK TABLE outcome IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(psycopg.OperationalError):  # 55P03 here; 40P01 is of the same kind
            shipper.ship()
    assert shipper.rejected == 0
    shipper.drain()
    assert ask("SELECT count(*) FROM outcome") == [(1,)]
    shipper.close()


def test_a_damaged_line_is_kept_and_the_rest_arrives(tmp_path: Path, connect: Any, ask: Any) -> None:
    first, last = new_id(), new_id()
    dead = Dead(tmp_path).write(*whole(first), tail=b"\0" * 512 + b"\n")
    dead.write(*whole(last))
    shipper = Shipper(tmp_path, connect)
    shipper.drain()
    assert shipper.damaged == 1
    assert ask("SELECT count(*) FROM outcome") == [(2,)]
    assert json.loads((tmp_path / REJECTED).read_text())["line"] == "\0" * 512
    shipper.close()


def test_two_shippers_share_the_folders_and_send_each_row_once(tmp_path: Path, connect: Any, ask: Any) -> None:
    names = [[new_id() for _ in range(60)] for _ in range(12)]
    for number, group in enumerate(names):
        Dead(tmp_path, f"f{number:02d}").write(*(payload for name in group for payload in whole(name)))
    shippers = [Shipper(tmp_path, connect) for _ in range(2)]

    def run(shipper: Shipper) -> None:
        until = time.monotonic() + 30
        while any(path.is_dir() for path in tmp_path.iterdir()) and time.monotonic() < until:
            shipper.ship()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run, shippers))  # raises what either of them raised
    assert ask("SELECT count(*) FROM outcome") == [(720,)]
    assert sum(shipper.shipped for shipper in shippers) == 1440
    assert list(tmp_path.iterdir()) == []
    for shipper in shippers:
        shipper.close()


def test_a_live_folder_is_shipped_and_stays(tmp_path: Path, connect: Any, ask: Any) -> None:
    folder, lock = new_folder(tmp_path, "alive")
    identity = new_id()
    folder.segment(1).write_bytes(encode_line(Payload([decision(identity)], (identity, PROJECT, None))))
    shipper = Shipper(tmp_path, connect)
    shipper.drain()
    assert folder.path.is_dir()
    assert ask("SELECT count(*) FROM outcome") == [(0,)]  # open, not abandoned
    assert folder.cursor() == Cursor(1, folder.segment(1).stat().st_size, 1)
    lock.release()
    shipper.drain()
    assert ask("SELECT status FROM outcome") == [("abandoned",)]
    shipper.close()


def test_a_folder_that_vanishes_is_forgotten(tmp_path: Path, connect: Any) -> None:
    folder, lock = new_folder(tmp_path, "a")
    shipper = Shipper(tmp_path, connect)
    assert shipper.ship() == 0
    folder.remove()
    lock.release()
    again, again_lock = new_folder(tmp_path, "a")
    assert shipper.ship() == 0
    assert shipper.ship() == 0
    again_lock.release()
    shipper.drain()
    assert not Folder(again.path).path.exists()
    shipper.close()


def test_a_line_larger_than_one_read(tmp_path: Path, connect: Any, ask: Any) -> None:
    identity, after = new_id(), new_id()
    big = "y" * (9 * 1024 * 1024)
    Dead(tmp_path).write(Payload([feedback(identity, comment=big)]), Payload([feedback(after)]))
    shipper = Shipper(tmp_path, connect)
    shipper.drain()
    assert ask("SELECT id::text, length(comment) FROM feedback ORDER BY id") == [(identity, len(big)), (after, None)]
    shipper.close()
