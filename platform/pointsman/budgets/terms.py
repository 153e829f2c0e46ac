"""A budget's terms, when its period began, and which budgets bind a caller.

The catalogue of all budgets is read once a second and kept in a file beside the directory of keys, so
that a gateway which starts while Postgres is away still knows which keys are limited.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import msgspec

from pointsman.identity import write_private
from pointsman.words import BudgetPeriod

CATALOGUE_FILE = "budgets.json"
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
"""When the one period of a `total` budget began."""


class Budget(msgspec.Struct, frozen=True):
    """What may be spent. `key_id` None: by the whole project. A limit of None does not limit."""

    id: str
    project_id: str
    key_id: str | None
    limit_usd: Decimal | None
    requests_per_minute: int | None
    tokens_per_minute: int | None
    period: BudgetPeriod

    @property
    def owner(self) -> str:
        """Whose it is, for messages."""
        return "this project" if self.key_id is None else "this key"


class Catalogue:
    """All budgets, found by project and key. A key is bound by its own budgets and its project's."""

    def __init__(self, budgets: Iterable[Budget] = ()) -> None:
        self.budgets = tuple(budgets)
        self._of: dict[tuple[str, str | None], tuple[Budget, ...]] = {}
        for budget in self.budgets:
            place = (budget.project_id, budget.key_id)
            self._of[place] = (*self._of.get(place, ()), budget)

    def of(self, project_id: str, key_id: str | None) -> tuple[Budget, ...]:
        """The budgets that bind a caller; empty for most."""
        if not self._of:
            return ()
        project = self._of.get((project_id, None), ())
        return project if key_id is None else self._of.get((project_id, key_id), ()) + project

    def save(self, home: Path) -> None:
        write_private(home / CATALOGUE_FILE, msgspec.json.encode(self.budgets))

    @classmethod
    def saved(cls, home: Path) -> Catalogue | None:
        """The catalogue of an earlier run, None where there is none."""
        try:
            return cls(msgspec.json.decode((home / CATALOGUE_FILE).read_bytes(), type=tuple[Budget, ...]))
        except (FileNotFoundError, msgspec.MsgspecError):
            return None


def period_start(period: BudgetPeriod, now: datetime) -> datetime:
    """The beginning of the period that `now` lies in, by the calendar of UTC."""
    if period == "total":
        return BEGINNING
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight if period == "day" else midnight.replace(day=1)


def period_end(period: BudgetPeriod, now: datetime) -> datetime | None:
    """When a budget resets next; None for one that never does."""
    if period == "total":
        return None
    start = period_start(period, now)
    if period == "day":
        return datetime.fromtimestamp(start.timestamp() + 86_400, tz=UTC)
    return start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)
