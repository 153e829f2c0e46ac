"""What can be exported from the log, and its columns: those of its table, and of a decision's request and outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from sqlalchemy import ColumnElement, FromClause, Label, Table, and_, exists, select

from pointsman.queries.scope import CALL, DECISION, FEEDBACK, OUTCOME, REQUEST
from pointsman.tables import METADATA

SubjectName = Literal["decisions", "outcomes", "calls", "feedback"]
SUBJECTS: tuple[str, ...] = get_args(SubjectName)

TEXTS = frozenset({
    "request_text", "request_body", "raw_reply", "messages", "completion", "reasoning", "tool_calls", "error",
    "comment", "demonstration", "plan",
})  # fmt: skip
"""Columns that hold what people and models wrote: left out where an export is to go without texts."""

_KEY: Table = METADATA.tables["api_key"]
_ASKED = and_(REQUEST.c.id == DECISION.c.request_id, REQUEST.c.project_id == DECISION.c.project_id)
_OF_REQUEST = (
    "received_at", "surface", "model", "stream", "text", "text_hash", "body", "hints", "tags", "task", "split", "learn",
)  # fmt: skip
_OF_OUTCOME = (
    "status", "worker", "score", "reason", "client_closed", "http_status", "calls", "cost", "first_token_ms",
    "latency_ms", "overhead_ms", "ended_at",
)  # fmt: skip


@dataclass(frozen=True)
class Subject:
    """`table` is what is paged through; `origin` the column that says where a row comes from, if it has one."""

    name: SubjectName
    table: Table
    source: FromClause
    columns: Sequence[Label[object]]
    origin: ColumnElement[str] | None
    worker: ColumnElement[str] | None
    learn: ColumnElement[bool] | None


def subject(name: SubjectName) -> Subject:
    """The subject of that name."""
    if name == "decisions":
        return _decisions()
    if name == "feedback":
        return Subject(name, FEEDBACK, FEEDBACK, _own(FEEDBACK), None, None, None)
    table = OUTCOME if name == "outcomes" else CALL
    decided = and_(DECISION.c.id == table.c.decision_id, DECISION.c.project_id == table.c.project_id)
    joined = table.outerjoin(DECISION, decided).outerjoin(REQUEST, _ASKED)
    return Subject(name, table, joined, _own(table), DECISION.c.origin, table.c.worker, learnable())


def _decisions() -> Subject:
    """A decision with its request, and its outcome where it has one (a full-information row has one a call)."""
    ended = and_(OUTCOME.c.id == DECISION.c.id, OUTCOME.c.call_id.is_(None))
    joined = DECISION.outerjoin(REQUEST, _ASKED).outerjoin(OUTCOME, ended)
    columns = [
        *_own(DECISION),
        *(REQUEST.c[column].label(f"request_{column}") for column in _OF_REQUEST),
        *(OUTCOME.c[column].label(f"outcome_{column}") for column in _OF_OUTCOME),
    ]
    return Subject("decisions", DECISION, joined, columns, DECISION.c.origin, DECISION.c.chosen, learnable())


def learnable() -> ColumnElement[bool]:
    """Neither the request nor, since then, its key was withdrawn."""
    withdrawn = exists(select(_KEY.c.id).where(_KEY.c.id == REQUEST.c.key_id, ~_KEY.c.learn))
    return and_(REQUEST.c.learn, ~withdrawn)


def _own(table: Table) -> list[Label[object]]:
    return [column.label(column.name) for column in table.columns]
