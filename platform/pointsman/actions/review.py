"""Reviewing: who has an item open, verdicts, and taking one back.

An item is held by one person in one window (`token`) for `HOLD`; whoever comes meanwhile is told by whom. A verdict
counts once per reviewer; with `wanted` of them the item is done. A verdict becomes feedback through the gateway like
anybody's word: `given_as_feedback` says which one, so that a verdict whose feedback was lost is sent again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, and_, insert, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from pointsman.actions.actor import Actor, record, require
from pointsman.errors import UserError
from pointsman.ids import is_uuid, new_id
from pointsman.tables import METADATA
from pointsman.words import ReviewRule, ReviewVerdict

ITEM = METADATA.tables["review_item"]
VERDICT = METADATA.tables["verdict"]
HOLD = timedelta(minutes=10)
MAX_TEXT = 20_000


class Taken(UserError):
    """Somebody else was faster, or has it open now."""


@dataclass(frozen=True)
class Judgement:
    """What a reviewer says of a decision. `better_answer` is what should have been answered."""

    verdict: ReviewVerdict
    better_worker: str | None = None
    better_answer: str | None = None
    comment: str | None = None
    blind: bool = False


def add_items(
    connection: Connection,
    actor: Actor,
    project: str,
    rule: ReviewRule,
    found: Iterable[tuple[str, float]],
    now: datetime,
    *,
    wanted: int = 1,
) -> int:
    """Queues decisions (id, information); those that are in a queue already are left out. How many were new."""
    require(actor, "reviewer", "fill a review queue")
    if not 1 <= wanted <= 5:
        raise UserError(f"reviewers: expected 1 to 5 per item, got {wanted}")
    rows = [
        {"id": new_id(), "project_id": project, "decision_id": decision, "rule": rule, "information": information,
         "wanted": wanted, "created_at": now}
        for decision, information in found
    ]  # fmt: skip
    if not rows:
        return 0
    fresh = upsert(ITEM).on_conflict_do_nothing(index_elements=["project_id", "decision_id"]).returning(ITEM.c.id)
    made = len(list(connection.execute(fresh, rows)))
    record(connection, actor, project, "review_fill", now, subject=rule, detail={"new": made})
    return made


def assign(connection: Connection, actor: Actor, project: str, item: str, to: str | None, now: datetime) -> None:
    """Only this person is offered the item from now on; None: anybody."""
    require(actor, "reviewer", "assign a review")
    _locked(connection, project, item)
    connection.execute(update(ITEM).where(ITEM.c.id == item).values(assigned_to=to))
    record(connection, actor, project, "review_assign", now, subject=item, detail={"to": to})


def take_next(
    connection: Connection,
    actor: Actor,
    project: str,
    rule: ReviewRule | None,
    token: str,
    now: datetime,
    skipped: Collection[str] = (),
) -> Any | None:
    """The open item that would teach most and that nobody else has, held from now on. None: there is none.

    `skipped` are items that this reviewer has put aside.
    """
    require(actor, "reviewer", "review")
    i = ITEM.c
    mine = [i.project_id == project, i.state == "open", _free(actor, token, now), ~_judged_by(actor.name)]
    mine.append(or_(i.assigned_to.is_(None), i.assigned_to == actor.name))
    if rule is not None:
        mine.append(i.rule == rule)
    if skipped:
        mine.append(i.id.not_in(list(skipped)))
    held = and_(i.lock_token == token, i.locked_until > now)
    query = select(ITEM).where(*mine).order_by(held.is_(True).desc(), i.information.desc(), i.id).limit(1)
    row = connection.execute(query.with_for_update(skip_locked=True)).first()
    return None if row is None else _hold(connection, row, actor, token, now)


def open_item(connection: Connection, actor: Actor, project: str, item: str, token: str, now: datetime) -> Any:
    """Holds one item; `Taken` where another window has it."""
    require(actor, "reviewer", "review")
    row = _locked(connection, project, item)
    _require_open(connection, row)
    _require_free(row, token, now)
    return _hold(connection, row, actor, token, now)


def release(connection: Connection, project: str, item: str, token: str) -> None:
    """Lets go of an item without a verdict."""
    i = ITEM.c
    free = update(ITEM).where(i.id == item, i.project_id == project, i.lock_token == token)
    connection.execute(free.values(locked_by=None, lock_token=None, locked_until=None))


def give_verdict(
    connection: Connection, actor: Actor, project: str, item: str, said: Judgement, token: str, now: datetime
) -> Any:
    """The verdict's row. `Taken` where another window holds the item or it is done; its next one is free then."""
    require(actor, "reviewer", "give a verdict")
    _check(said)
    row = _locked(connection, project, item)
    _require_open(connection, row)
    _require_free(row, token, now)
    known = _of(connection, row)
    if any(one.reviewer == actor.name for one in known):
        raise UserError(f"{actor.name} has judged this item already; undo that first")
    values = {
        "id": new_id(), "project_id": project, "item_id": row.id, "decision_id": row.decision_id,
        "reviewer": actor.name, "verdict": said.verdict, "blind": said.blind, "better_worker": said.better_worker,
        "better_answer": said.better_answer or None, "comment": said.comment or None, "given_at": now,
    }  # fmt: skip
    made = connection.execute(insert(VERDICT).values(values).returning(VERDICT)).one()
    done = len(known) + 1 >= row.wanted
    free = {"locked_by": None, "lock_token": None, "locked_until": None, "state": "done" if done else "open"}
    connection.execute(update(ITEM).where(ITEM.c.id == row.id).values(free))
    detail = {"verdict": said.verdict, "decision_id": str(row.decision_id)}
    record(connection, actor, project, "verdict", now, subject=str(made.id), detail=detail)
    return made


def given_as_feedback(connection: Connection, project: str, verdict: str, feedback: str) -> None:
    """The gateway has taken the verdict as this feedback."""
    v = VERDICT.c
    connection.execute(
        update(VERDICT).where(v.id == verdict, v.project_id == project).values(feedback_id=UUID(feedback))
    )


def undo_verdict(connection: Connection, actor: Actor, project: str, verdict: str, now: datetime) -> Any:
    """Takes one's own verdict back: the item is open again. Its row, whose feedback is to be retracted too."""
    require(actor, "reviewer", "undo a verdict")
    v = VERDICT.c
    mine = [v.id == verdict, v.project_id == project, v.reviewer == actor.name, v.undone_at.is_(None)]
    row = connection.execute(update(VERDICT).where(*mine).values(undone_at=now).returning(VERDICT)).first()
    if row is None:
        raise UserError("there is no such verdict of yours that stands")
    connection.execute(update(ITEM).where(ITEM.c.id == row.item_id).values(state="open"))
    record(connection, actor, project, "verdict_undo", now, subject=verdict)
    return row


def feedback_of(row: Any) -> dict[str, Any]:
    """A verdict as the body of `POST /v1/feedback`: whether the answer was right, and what would have been better.

    `overprovisioned` says that the answer was good: that a cheaper worker would have done is its better worker.
    """
    body: dict[str, Any] = {
        "decision_id": str(row.decision_id),
        "metric": "correct",
        "value": row.verdict in ("good_fit", "overprovisioned"),
        "source": "review",
        "rater": row.reviewer[:200],
        "comment": row.verdict if row.comment is None else f"{row.verdict}: {row.comment}"[:MAX_TEXT],
        "idempotency_key": f"verdict {row.id}",
    }
    if row.better_worker is not None:
        body["better_worker"] = row.better_worker
    if row.better_answer is not None:
        body["demonstration"] = row.better_answer
    return body


def _check(said: Judgement) -> None:
    for name in ("better_answer", "comment"):
        if len(getattr(said, name) or "") > MAX_TEXT:
            raise UserError(f"{name}: expected at most {MAX_TEXT} characters")


def _free(actor: Actor, token: str, now: datetime) -> ColumnElement[bool]:
    i = ITEM.c
    return or_(i.lock_token.is_(None), i.lock_token == token, i.locked_until.is_(None), i.locked_until <= now)


def _judged_by(name: str) -> ColumnElement[bool]:
    v = VERDICT.c
    return select(v.id).where(v.item_id == ITEM.c.id, v.reviewer == name, v.undone_at.is_(None)).exists()


def _locked(connection: Connection, project: str, item: str) -> Any:
    query = select(ITEM).where(ITEM.c.id == item, ITEM.c.project_id == project).with_for_update()
    row = connection.execute(query).first() if is_uuid(item) else None
    if row is None:
        raise UserError(f"there is no item {item[:60]!r} to review here")
    return row


def _require_open(connection: Connection, row: Any) -> None:
    if row.state == "done":
        said = ", ".join(f"{one.reviewer} said {one.verdict.replace('_', ' ')}" for one in _of(connection, row))
        raise Taken(f"this item is done: {said}")


def _require_free(row: Any, token: str, now: datetime) -> None:
    if row.lock_token not in (None, token) and row.locked_until is not None and row.locked_until > now:
        raise Taken(f"{row.locked_by} has this item open until {row.locked_until:%H:%M:%S} UTC; take another one")


def _hold(connection: Connection, row: Any, actor: Actor, token: str, now: datetime) -> Any:
    values = {"locked_by": actor.name, "lock_token": token, "locked_until": now + HOLD}
    return connection.execute(update(ITEM).where(ITEM.c.id == row.id).values(values).returning(ITEM)).one()


def _of(connection: Connection, item: Any) -> list[Any]:
    v = VERDICT.c
    query = select(VERDICT).where(v.item_id == item.id, v.undone_at.is_(None)).order_by(v.id)
    return list(connection.execute(query))
