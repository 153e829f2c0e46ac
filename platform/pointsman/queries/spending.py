"""Budgets of money and how far each is spent in its period."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import Engine, select

from pointsman.queries.scope import of_project
from pointsman.tables import METADATA

_BUDGET = METADATA.tables["budget"]
_PROJECT = METADATA.tables["project"]
_KEY = METADATA.tables["api_key"]


@dataclass(frozen=True)
class BudgetLine:
    """USD. `prefix` is the beginning of the key that it limits, None where it is the whole project's."""

    project: str
    prefix: str | None
    period: str
    spent: Decimal
    limit: Decimal

    @property
    def share(self) -> float:
        return float(self.spent / self.limit) if self.limit else 1.0


def budgets(engine: Engine, project: str | None) -> tuple[BudgetLine, ...]:
    """Those that limit money, the most spent first. What gateways hold reserved is not in `spent`."""
    b = _BUDGET.c
    query = (
        select(_PROJECT.c.name, _KEY.c.prefix, b.period, b.spent, b.limit_usd)
        .select_from(_BUDGET.join(_PROJECT, _PROJECT.c.id == b.project_id).outerjoin(_KEY, _KEY.c.id == b.key_id))
        .where(of_project(_BUDGET, project), b.limit_usd.is_not(None))
    )
    with engine.connect() as connection:
        lines = [BudgetLine(*row) for row in connection.execute(query)]
    return tuple(sorted(lines, key=lambda line: -line.share))
