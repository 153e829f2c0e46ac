"""What every read shares: the tables as Core tables, the project a reader may see, times as ranges of ids.

`project` is the text form of a project's id; None is the operator, who sees all projects.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, FromClause, Table, exists, false, select, true

from pointsman.ids import is_uuid, lowest_id
from pointsman.tables import METADATA

DECISION: Table = METADATA.tables["decision"]
REQUEST: Table = METADATA.tables["request"]
CALL: Table = METADATA.tables["call"]
OUTCOME: Table = METADATA.tables["outcome"]
FEEDBACK: Table = METADATA.tables["feedback"]

NIL = UUID(int=0)
REQUEST_LEAD = timedelta(days=1)
"""A decision is made within this time of its request: lets a range over decisions prune requests too."""


def of_project(table: FromClause, project: str | None) -> ColumnElement[bool]:
    """The rows of `table` that this reader may see; a project id that is no UUID sees nothing."""
    if project is None:
        return true()
    try:
        return table.c.project_id == UUID(project)
    except ValueError:
        return false()


def bound(project: str | None) -> str | None:
    """The project as a parameter of fixed SQL: an id that is no UUID becomes one that no project has."""
    return project if project is None or is_uuid(project) else str(NIL)


def in_time(column: ColumnElement[UUID], since: datetime | None, until: datetime | None) -> ColumnElement[bool]:
    """`since` ≤ the time in a UUIDv7 column < `until`, as a range of ids so that partitions prune."""
    condition: ColumnElement[bool] = true()
    if since is not None:
        condition &= column >= UUID(lowest_id(since))
    if until is not None:
        condition &= column < UUID(lowest_id(until))
    return condition


def standing(feedback: FromClause = FEEDBACK) -> ColumnElement[bool]:
    """Feedback that holds: no retraction itself, and neither amended nor retracted by a later row."""
    later = FEEDBACK.alias()
    # Only its own project takes a word back: an amendment elsewhere that names this id changes nothing.
    same_project = later.c.project_id == feedback.c.project_id
    replaced = exists(select(later.c.id).where(later.c.amends == feedback.c.id, same_project))
    return ~feedback.c.retracted & ~replaced
