"""The review queues as they stand, the verdicts given, and how far reviewers agree."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Engine, String, cast, func, select

from pointsman.queries.proportion import Proportion
from pointsman.statistics.agreement import Agreement, krippendorff
from pointsman.tables import METADATA
from pointsman.words import ReviewRule, members

ITEM = METADATA.tables["review_item"]
LABEL_SET = METADATA.tables["label_set"]
VERSION = METADATA.tables["router_version"]
VERDICT = METADATA.tables["verdict"]


@dataclass(frozen=True)
class Queue:
    """One rule's queue. `found`: verdicts other than good fit, of all; `lift`: that share over the random queue's."""

    rule: str
    open: int
    done: int
    found: Proportion
    lift: float | None


@dataclass(frozen=True)
class LabelSetLine:
    """`routers`: ids of the versions that were trained on it."""

    hash: str
    rows: int
    made_at: datetime
    routers: tuple[str, ...]


@dataclass(frozen=True)
class VerdictLine:
    id: str
    item_id: str
    decision_id: str
    reviewer: str
    verdict: str
    rule: str
    better_worker: str | None
    comment: str | None
    feedback_id: str | None
    given_at: datetime
    undone_at: datetime | None


def queues(engine: Engine, project: str) -> tuple[Queue, ...]:
    """Every rule's queue, in the order of `ReviewRule`."""
    i, v = ITEM.c, VERDICT.c
    sizes = select(i.rule, i.state, func.count()).where(i.project_id == project).group_by(i.rule, i.state)
    joined = VERDICT.join(ITEM, i.id == v.item_id)
    words = (
        select(i.rule, func.count(), func.count().filter(v.verdict != "good_fit"))
        .select_from(joined)
        .where(v.project_id == project, v.undone_at.is_(None))
        .group_by(i.rule)
    )
    with engine.connect() as connection:
        counted = {(row[0], row[1]): row[2] for row in connection.execute(sizes)}
        found = {row[0]: Proportion(row[2], row[1]) for row in connection.execute(words)}
    base = found.get("random")
    return tuple(
        Queue(
            rule,
            counted.get((rule, "open"), 0),
            counted.get((rule, "done"), 0),
            found.get(rule, Proportion(0, 0)),
            _lift(found.get(rule), base),
        )
        for rule in members(ReviewRule)
    )


def open_items(engine: Engine, project: str, limit: int = 50) -> tuple[Any, ...]:
    """Rows of `review_item` that wait, those that would teach most first."""
    i = ITEM.c
    query = select(ITEM).where(i.project_id == project, i.state == "open").order_by(i.information.desc(), i.id)
    with engine.connect() as connection:
        return tuple(connection.execute(query.limit(limit)))


def verdicts(engine: Engine, project: str, *, reviewer: str | None = None, limit: int = 50) -> tuple[VerdictLine, ...]:
    """The newest, undone ones too."""
    i, v = ITEM.c, VERDICT.c
    query = (
        select(VERDICT, i.rule)
        .select_from(VERDICT.join(ITEM, i.id == v.item_id))
        .where(v.project_id == project)
        .order_by(v.id.desc())
        .limit(limit)
    )
    if reviewer is not None:
        query = query.where(v.reviewer == reviewer)
    with engine.connect() as connection:
        return tuple(_verdict(row) for row in connection.execute(query))


def verdict_row(engine: Engine, project: str, verdict: str) -> Any:
    """The row of `verdict`, for `pointsman.actions.review.feedback_of`."""
    v = VERDICT.c
    with engine.connect() as connection:
        return connection.execute(select(VERDICT).where(v.id == verdict, v.project_id == project)).one()


def agreement(engine: Engine, project: str) -> Agreement:
    """Krippendorff's α of the verdicts that stand, over items that at least two people judged."""
    v = VERDICT.c
    query = select(v.item_id, v.verdict).where(v.project_id == project, v.undone_at.is_(None))
    units: dict[Any, list[str]] = defaultdict(list)
    with engine.connect() as connection:
        for row in connection.execute(query):
            units[row.item_id].append(row.verdict)
    return krippendorff(list(units.values()))


def trail(engine: Engine, project: str, since: datetime) -> tuple[LabelSetLine, ...]:
    """Label sets that were made after a word was given, oldest first, with the router versions that name them."""
    s = LABEL_SET.c
    sets = select(s.hash, s.rows, s.created_at).where(s.project_id == project, s.created_at >= since)
    with engine.connect() as connection:
        rows = list(connection.execute(sets.order_by(s.id).limit(5)))
        return tuple(
            LabelSetLine(row.hash, row.rows, row.created_at, _trained_on(connection, row.hash)) for row in rows
        )


def _trained_on(connection: Connection, label_set: str) -> tuple[str, ...]:
    """Router versions whose configuration names the label set."""
    v = VERSION.c
    named = cast(v.config, String).contains(label_set, autoescape=True)
    return tuple(str(found) for found in connection.scalars(select(v.id).where(named).order_by(v.created_at).limit(5)))


def _lift(mine: Proportion | None, base: Proportion | None) -> float | None:
    if mine is None or base is None or not mine.n or not base.count:
        return None
    return (mine.count / mine.n) / (base.count / base.n)


def _verdict(row: Any) -> VerdictLine:
    feedback = None if row.feedback_id is None else str(row.feedback_id)
    return VerdictLine(
        str(row.id), str(row.item_id), str(row.decision_id), row.reviewer, row.verdict, row.rule, row.better_worker,
        row.comment, feedback, row.given_at, row.undone_at,
    )  # fmt: skip
