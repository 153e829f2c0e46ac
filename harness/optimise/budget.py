"""What a search may spend and has spent: calls to the router LLM, money, time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pointsman.errors import UserError

Clock = Callable[[], float]
OnCost = Callable[[Decimal], None]


@dataclass(frozen=True)
class Budget:
    """Limits; None is none. Money (USD) and time (seconds) may be passed by the calls that are under way."""

    calls: int | None = 1_000
    money: Decimal | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("calls", "money", "seconds"):
            limit = getattr(self, name)
            if limit is not None and limit <= 0:
                raise UserError(f"budget: {name} must be above 0, got {limit}")


class BudgetSpent(Exception):
    """The search must end here: control flow, caught by the search itself. The argument names the limit."""


@dataclass
class Spending:
    """Counts router calls (each distinct prompt once), reflection calls and their money.

    A resumed search counts what it spent before: the same prompts are asked in the same order, and those
    that were answered then are answered from the record and counted all the same.
    """

    budget: Budget
    clock: Clock
    calls: int = 0
    reflections: int = 0
    money: Decimal = Decimal(0)
    unpriced: int = 0
    seconds_before: float = 0.0
    on_cost: OnCost = lambda amount: None
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.clock()

    @property
    def seconds(self) -> float:
        return self.seconds_before + self.clock() - self._began

    @property
    def calls_left(self) -> int | None:
        return None if self.budget.calls is None else self.budget.calls - self.calls

    def spent(self) -> str | None:
        """The limit that is reached, None while there is room."""
        budget = self.budget
        if budget.calls is not None and self.calls >= budget.calls:
            return "calls"
        if budget.money is not None and self.money >= budget.money:
            return "money"
        return "time" if budget.seconds is not None and self.seconds >= budget.seconds else None

    def admit(self) -> None:
        """Counts one router call, or raises `BudgetSpent`."""
        if limit := self.spent():
            raise BudgetSpent(limit)
        self.calls += 1

    def pay(self, cost: Decimal | None, *, now: bool = True) -> None:
        """Adds a call's cost; an unknown cost is counted as such. `now`: the call was made in this run."""
        if cost is None:
            self.unpriced += 1
            cost = Decimal(0)
        self.money += cost
        if now:
            self.on_cost(cost)

    def as_dict(self) -> dict[str, Any]:
        return {
            "router_calls": self.calls,
            "reflection_calls": self.reflections,
            "money_usd": str(self.money),
            "calls_of_unknown_cost": self.unpriced,
            "seconds": round(self.seconds, 3),
        }
