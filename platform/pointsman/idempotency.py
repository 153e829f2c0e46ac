"""`Idempotency-Key`: one request runs under a key, and a repeat gets its stored answer.

    begun = begin(engine, project_id, key, request_hash(path, body))
    if not isinstance(begun, New): answer with `begun.answer` where it is Done, else with `refusal(begun)`
    finish(engine, begun, decision_id=…, status=…, content_type=…, body=capture.body)   # an answer was given
    abandon(engine, begun)                                    # it failed before an answer: the key is free again

A running request holds its key by a claim of half a minute, which its gateway prolongs (`keep`, each few
seconds, for all that run): the keys of a process that died are free soon after. All of these block; all
raise SQLAlchemy's errors while Postgres is away. The key itself is stored as its hash only. What is not
here: which answers are worth keeping, and the HTTP around it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Engine, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from pointsman.errors import BrokenInvariant, RequestError
from pointsman.ids import new_id
from pointsman.tables import IdempotencyRow

KEPT = timedelta(hours=24)
CLAIM = timedelta(seconds=30)
MAX_BODY_BYTES = 1_000_000
MAX_KEY_CHARS = 255
RETRY_SECONDS = 1.0
_TRIES = 5

_rows = IdempotencyRow.__table__  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An answer as it was given: a JSON body, or the whole of a stream's events."""

    status: int
    content_type: str
    body: bytes
    decision_id: str | None


@dataclass(frozen=True, slots=True)
class New:
    """The request is to be run, under this claim."""

    project_id: str
    key_hash: str
    claim: str


@dataclass(frozen=True, slots=True)
class Running:
    """The first request of this key still runs."""


@dataclass(frozen=True, slots=True)
class Done:
    """It has ended. `answer` None: its answer was too large to keep, or not to be kept."""

    answer: StoredAnswer | None
    decision_id: str | None


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The key was used for another request."""


class Capture:
    """Collects what is sent to a client, up to a bound; above it nothing is kept."""

    def __init__(self, limit: int = MAX_BODY_BYTES) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= self._limit:
            self._parts.append(part)
        else:
            self._parts.clear()

    @property
    def body(self) -> bytes | None:
        """All of it, None where it was more than the bound."""
        return b"".join(self._parts) if self._size <= self._limit else None


def request_hash(path: str, body: bytes) -> str:
    """What makes two requests the same: where they went, and every byte of them."""
    return sha256(path.encode() + b"\0" + body).hexdigest()


def begin(
    engine: Engine, project_id: str, key: str, request_hash: str, *, now: datetime | None = None
) -> New | Running | Done | Mismatch:
    """Claims a key, or says what became of the request that has it. Raises 400 for a key of no use."""
    if not key or len(key) > MAX_KEY_CHARS:
        raise RequestError(f"Idempotency-Key: expected 1 to {MAX_KEY_CHARS} characters", code="bad_idempotency_key")
    claim = New(project_id, sha256(key.encode("utf-8", "surrogatepass")).hexdigest(), new_id())
    for _ in range(_TRIES):
        with engine.begin() as connection:
            moment = _time(connection, now)
            if _claimed(connection, claim, request_hash, moment):
                return claim
            row = connection.execute(select(_rows).where(*_place(claim))).one_or_none()
        if row is not None:
            return _found(row, request_hash)
        # It was given up between the two statements.
    raise BrokenInvariant("an idempotency key was taken and freed again at each of several tries")


def finish(
    engine: Engine,
    claim: New,
    *,
    decision_id: str | None,
    status: int,
    content_type: str,
    body: bytes | None,
    now: datetime | None = None,
) -> bool:
    """Stores the answer for 24 hours; `body` None: it is not kept. False where the claim was lost meanwhile."""
    kept = body is not None and len(body) <= MAX_BODY_BYTES
    with engine.begin() as connection:
        done = update(_rows).where(*_held(claim)).values(
            state="done",
            decision_id=decision_id,
            status=status,
            content_type=content_type,
            body=body if kept else None,
            kept=kept,
            expires_at=_time(connection, now) + KEPT,
        )  # fmt: skip
        return connection.execute(done).rowcount == 1


def abandon(engine: Engine, claim: New) -> bool:
    """Frees the key of a request that ended without an answer. False where the claim was lost meanwhile."""
    with engine.begin() as connection:
        return connection.execute(delete(_rows).where(*_held(claim))).rowcount == 1


def keep(engine: Engine, claims: Iterable[New], *, now: datetime | None = None) -> int:
    """Prolongs the claims of requests that still run; how many there were."""
    ids = [UUID(claim.claim) for claim in claims]
    if not ids:
        return 0
    with engine.begin() as connection:
        still = update(_rows).where(_rows.c.claim.in_(ids), _rows.c.state == "running")
        return connection.execute(still.values(expires_at=_time(connection, now) + CLAIM)).rowcount


def sweep(engine: Engine, *, now: datetime | None = None) -> int:
    """Deletes what has expired; how many rows that were."""
    with engine.begin() as connection:
        return connection.execute(delete(_rows).where(_rows.c.expires_at <= _time(connection, now))).rowcount


def refusal(begun: Running | Done | Mismatch) -> RequestError:
    """The error for a repeat that gets no answer now, or never."""
    if isinstance(begun, Mismatch):
        message = "this Idempotency-Key was used for another request; use a new one"
        return RequestError(message, status=422, code="idempotency_key_reused")
    if isinstance(begun, Running):
        message = "the first request with this Idempotency-Key still runs"
        return RequestError(message, status=409, code="request_in_progress", retry_after=RETRY_SECONDS)
    message = "the request with this Idempotency-Key has been answered, and its answer was not kept"
    named = f"{message} (decision {begun.decision_id})" if begun.decision_id else message
    return RequestError(named, status=409, code="answer_not_kept")


def _claimed(connection: Connection, claim: New, request_hash: str, now: datetime) -> bool:
    """One statement: a row of our own, or the place of one that has expired."""
    values: dict[str, Any] = {
        "state": "running",
        "claim": claim.claim,
        "request_hash": request_hash,
        "decision_id": None,
        "status": None,
        "content_type": None,
        "body": None,
        "kept": False,
        "created_at": now,
        "expires_at": now + CLAIM,
    }
    made = insert(_rows).values(project_id=claim.project_id, key_hash=claim.key_hash, **values)
    taken = made.on_conflict_do_update(
        index_elements=["project_id", "key_hash"], set_=values, where=_rows.c.expires_at <= now
    )
    return connection.execute(taken.returning(_rows.c.claim)).scalar_one_or_none() is not None


def _found(row: Any, request_hash: str) -> Running | Done | Mismatch:
    if row.request_hash != request_hash:
        return Mismatch()
    if row.state == "running":
        return Running()
    decision_id = None if row.decision_id is None else str(row.decision_id)
    if not row.kept:
        return Done(None, decision_id)
    return Done(StoredAnswer(row.status, row.content_type, bytes(row.body), decision_id), decision_id)


def _place(claim: New) -> tuple[Any, ...]:
    return _rows.c.project_id == claim.project_id, _rows.c.key_hash == claim.key_hash


def _held(claim: New) -> tuple[Any, ...]:
    return (*_place(claim), _rows.c.claim == claim.claim, _rows.c.state == "running")


def _time(connection: Connection, now: datetime | None) -> datetime:
    """The database's clock, one for all gateways, unless a test says what time it is."""
    if now is not None:
        return now
    moment: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
    return moment.astimezone(UTC)
