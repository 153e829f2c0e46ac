"""Idempotency keys: one runs, a repeat waits and then gets the same answer, another body is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier

import pytest
from sqlalchemy import text

from pointsman.errors import RequestError
from pointsman.idempotency import (
    CLAIM,
    KEPT,
    MAX_BODY_BYTES,
    Capture,
    Done,
    Mismatch,
    New,
    Running,
    StoredAnswer,
    abandon,
    begin,
    finish,
    keep,
    refusal,
    request_hash,
    sweep,
)
from pointsman.ids import content_id, new_id

PROJECT, OTHER = content_id("project", "one"), content_id("project", "two")
NOW = datetime(2026, 3, 1, tzinfo=UTC)
HASH = request_hash("/v1/chat/completions", b'{"model": "pointsman"}')
SECOND = timedelta(seconds=1)


@pytest.fixture
def db(engine, empty_database):
    return engine


def done(db, claim, body=b'{"ok": 1}', **more):
    given = {"decision_id": None, "status": 200, "content_type": "application/json", "body": body, "now": NOW}
    return finish(db, claim, **(given | more))


def test_a_repeat_waits_then_gets_the_stored_answer(db):
    first = begin(db, PROJECT, "k", HASH, now=NOW)
    assert isinstance(first, New)
    assert begin(db, PROJECT, "k", HASH, now=NOW) == Running()
    decision = new_id()
    body = 'data: {"a": "é\u2028"}\n\ndata: [DONE]\n\n'.encode()
    assert done(db, first, body, decision_id=decision, content_type="text/event-stream")
    again = begin(db, PROJECT, "k", HASH, now=NOW + KEPT - SECOND)
    assert again == Done(StoredAnswer(200, "text/event-stream", body, decision), decision)
    assert isinstance(begin(db, PROJECT, "k", HASH, now=NOW + KEPT), New)


def test_twenty_at_once_and_one_runs(db):
    together = Barrier(20)

    def ask(_):
        together.wait()
        return begin(db, PROJECT, "k", HASH)

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(ask, range(20)))
    assert sum(isinstance(answer, New) for answer in answers) == 1
    assert sum(answer == Running() for answer in answers) == 19


def test_twenty_at_once_over_a_key_that_is_being_given_up(db):
    """Whatever the order, the key is claimed by one at a time and none fails."""

    def ask(_):
        begun = begin(db, PROJECT, "k", HASH)
        if isinstance(begun, New):
            assert abandon(db, begun)
        return begun

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(ask, range(60)))
    assert all(isinstance(answer, New | Running) for answer in answers)
    assert isinstance(begin(db, PROJECT, "k", HASH), New)


def test_another_body_under_the_same_key_is_refused_while_it_runs_and_after(db):
    first = begin(db, PROJECT, "k", HASH, now=NOW)
    changed = request_hash("/v1/chat/completions", b'{"model": "other"}')
    assert begin(db, PROJECT, "k", changed, now=NOW) == Mismatch()
    done(db, first)
    assert begin(db, PROJECT, "k", changed, now=NOW) == Mismatch()
    assert begin(db, PROJECT, "k", request_hash("/v1/responses", b'{"model": "pointsman"}'), now=NOW) == Mismatch()


def test_projects_do_not_see_each_others_keys(db):
    done(db, begin(db, PROJECT, "k", HASH, now=NOW))
    assert isinstance(begin(db, OTHER, "k", HASH, now=NOW), New)
    with db.connect() as connection:
        assert "'k'" not in str(connection.execute(text("SELECT * FROM idempotency")).all())


def test_a_failure_before_an_answer_frees_the_key(db):
    first = begin(db, PROJECT, "k", HASH, now=NOW)
    assert abandon(db, first)
    second = begin(db, PROJECT, "k", HASH, now=NOW)
    assert isinstance(second, New) and second.claim != first.claim
    assert not abandon(db, first)
    assert not done(db, first)
    assert begin(db, PROJECT, "k", HASH, now=NOW) == Running()


def test_a_claim_is_kept_while_it_runs_and_lapses_with_its_process(db):
    first = begin(db, PROJECT, "k", HASH, now=NOW)
    gone = begin(db, PROJECT, "other", HASH, now=NOW)
    assert isinstance(gone, New)
    assert keep(db, [first], now=NOW + CLAIM - SECOND) == 1
    assert keep(db, []) == 0
    assert begin(db, PROJECT, "k", HASH, now=NOW + CLAIM + SECOND) == Running()
    heir = begin(db, PROJECT, "other", HASH, now=NOW + CLAIM + SECOND)
    assert isinstance(heir, New)
    assert not done(db, gone)  # it was thought dead, and may not answer for its heir
    assert done(db, heir, b"{}", now=NOW + CLAIM + SECOND)


def test_what_is_too_large_is_not_replayed(db):
    first = begin(db, PROJECT, "k", HASH, now=NOW)
    decision = new_id()
    assert done(db, first, b"x" * (MAX_BODY_BYTES + 1), decision_id=decision)
    begun = begin(db, PROJECT, "k", HASH, now=NOW)
    assert begun == Done(None, decision)
    error = refusal(begun)
    assert (error.status, error.code, error.retry_after) == (409, "answer_not_kept", None)
    assert error.message == (
        f"the request with this Idempotency-Key has been answered, and its answer was not kept (decision {decision})"
    )


def test_a_capture_is_bounded():
    capture = Capture(limit=10)
    for part in (b"12345", b"", b"67890"):
        capture.add(part)
    assert capture.body == b"1234567890"
    capture.add(b"1")
    capture.add(b"2")
    assert capture.body is None
    assert Capture().body == b""


def test_the_errors_of_a_repeat():
    running, other = refusal(Running()), refusal(Mismatch())
    assert (running.status, running.code, running.retry_after) == (409, "request_in_progress", 1.0)
    assert (other.status, other.code, other.retry_after) == (422, "idempotency_key_reused", None)


@pytest.mark.parametrize("key", ["", "x" * 256])
def test_a_key_of_no_use_is_refused(db, key):
    with pytest.raises(RequestError, match="expected 1 to 255 characters"):
        begin(db, PROJECT, key, HASH)


def test_a_sweep_takes_what_has_expired_and_nothing_else(db):
    done(db, begin(db, PROJECT, "old", HASH, now=NOW))
    begin(db, PROJECT, "dead", HASH, now=NOW)
    late = NOW + KEPT
    done(db, begin(db, PROJECT, "new", HASH, now=late), now=late)
    assert sweep(db, now=late) == 2
    assert isinstance(begin(db, PROJECT, "new", HASH, now=late), Done)
