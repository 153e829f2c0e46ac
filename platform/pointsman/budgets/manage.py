"""Budgets as people handle them: setting, ending, and listing them with what was spent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from sqlalchemy import Connection, delete, func, select
from sqlalchemy.dialects.postgresql import insert

from pointsman.budgets.terms import period_end, period_start
from pointsman.errors import UserError
from pointsman.ids import is_uuid, new_id
from pointsman.tables import ApiKey, BudgetLease, BudgetRow, Project
from pointsman.words import BudgetPeriod, members

MOST = 2_000_000_000
"""The highest rate a minute, and in USD the highest limit, that the columns take with room to spare."""

_budgets = BudgetRow.__table__  # type: ignore[attr-defined]
_leases = BudgetLease.__table__  # type: ignore[attr-defined]
_projects = Project.__table__  # type: ignore[attr-defined]
_keys = ApiKey.__table__  # type: ignore[attr-defined]


@dataclass(frozen=True)
class BudgetStatus:
    """A budget with what was spent of it in the period that runs now. `key_id` None: the whole project's."""

    id: str
    project: str
    project_id: str
    key_id: str | None
    period: BudgetPeriod
    limit_usd: Decimal | None
    spent_usd: Decimal
    resets_at: datetime | None
    requests_per_minute: int | None
    tokens_per_minute: int | None


def set_budget(
    connection: Connection,
    *,
    project_id: str,
    key_id: str | None,
    period: BudgetPeriod = "day",
    limit_usd: Decimal | None = None,
    requests_per_minute: int | None = None,
    tokens_per_minute: int | None = None,
) -> None:
    """Makes or changes the budget of a key (None: of a project) for a period; what was spent of it stays.

    A limit of None leaves one that is there as it is.
    """
    limits = {
        "limit_usd": limit_usd,
        "requests_per_minute": requests_per_minute,
        "tokens_per_minute": tokens_per_minute,
    }
    given = {name: value for name, value in limits.items() if value is not None}
    _check(period, given)
    row = {"id": new_id(), "project_id": project_id, "key_id": key_id, "period": period}
    made = insert(_budgets).values(**row, **limits, created_at=datetime.now(UTC))
    connection.execute(made.on_conflict_do_update(index_elements=["project_id", "key_id", "period"], set_=given))


def remove_budgets(connection: Connection, *, project_id: str, key_id: str | None) -> int:
    """Ends all budgets of a key, or with None those of the project itself; how many there were."""
    chosen = delete(_budgets).where(_budgets.c.project_id == project_id, _budgets.c.key_id.is_not_distinct_from(key_id))
    return connection.execute(chosen).rowcount


def list_budgets(connection: Connection, now: datetime | None = None) -> list[BudgetStatus]:
    """Every budget, oldest first, with what gateways had told of it a second ago."""
    moment = now or datetime.now(UTC)
    used = (
        select(_leases.c.budget_id, _leases.c.period_start, func.sum(_leases.c.used).label("used"))
        .group_by(_leases.c.budget_id, _leases.c.period_start)
        .subquery()
    )
    same = (used.c.budget_id == _budgets.c.id) & (used.c.period_start == _budgets.c.period_start)
    columns = (_budgets, _projects.c.name.label("project"), func.coalesce(used.c.used, 0).label("used"))
    found = select(*columns).join(_projects).join(used, same, isouter=True)
    rows = connection.execute(found.order_by(_budgets.c.id))
    return [
        BudgetStatus(
            id=str(row.id),
            project=row.project,
            project_id=str(row.project_id),
            key_id=None if row.key_id is None else str(row.key_id),
            period=row.period,
            limit_usd=row.limit_usd,
            spent_usd=row.spent + row.used if row.period_start == period_start(row.period, moment) else Decimal(0),
            resets_at=period_end(row.period, moment),
            requests_per_minute=row.requests_per_minute,
            tokens_per_minute=row.tokens_per_minute,
        )
        for row in rows
    ]


def require_key(connection: Connection, key_id: str) -> str:
    """The project of a key. Raises `UserError` where there is no such key."""
    found = connection.scalar(select(_keys.c.project_id).where(_keys.c.id == key_id)) if is_uuid(key_id) else None
    if found is None:
        raise UserError(f"no key has the id {key_id[:36]!r}; `pointsman keys list` shows them")
    return str(found)


def _check(period: str, given: dict[str, int | Decimal]) -> None:
    if period not in members(BudgetPeriod):
        raise UserError(f"period: expected one of {', '.join(members(BudgetPeriod))}, got {period!r}")
    if not given:
        raise UserError("a budget needs a limit: of USD, of requests a minute or of tokens a minute")
    for name, value in given.items():
        least = 0 if name == "limit_usd" else 1
        if not (Decimal(value).is_finite() and least <= value <= MOST):
            raise UserError(f"{name}: expected a number from {least} to {MOST}, got {value}")
