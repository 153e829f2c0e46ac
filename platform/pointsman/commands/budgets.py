"""`pointsman keys budget`, and the options by which a key is given limits."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Annotated, cast

import typer

from pointsman.commands.database import log_database
from pointsman.commands.options import ConfigFile, Json, opened
from pointsman.commands.output import out, print_json, say, usd
from pointsman.errors import UserError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from pointsman.budgets.manage import BudgetStatus
    from pointsman.words import BudgetPeriod

BUDGET_HELP = """Show a key's budgets, or change them.

What was spent in the period stays; a limit that is not named stays as it
is. Gateways know it within two seconds.

Examples:
  pointsman keys budget ID                         what it may spend, and has spent
  pointsman keys budget ID --budget 20             20 USD a day
  pointsman keys budget ID --budget 300 --period month
  pointsman keys budget ID --remove                no limits any more
"""

BudgetUsd = Annotated[
    str | None,
    typer.Option("--budget", metavar="USD", help="What it may spend in a period.", show_default=False),
]
Period = Annotated[str, typer.Option("--period", metavar="PERIOD", help="Of the budget: day, month or total.")]
RequestsPerMinute = Annotated[
    int | None, typer.Option("--requests-per-minute", metavar="N", help="Requests a minute.", show_default=False)
]
TokensPerMinute = Annotated[
    int | None,
    typer.Option("--tokens-per-minute", metavar="N", help="Tokens a minute, in and out.", show_default=False),
]


@dataclass(frozen=True)
class Limits:
    """What the options say; None where one was not given."""

    period: BudgetPeriod
    limit_usd: Decimal | None
    requests_per_minute: int | None
    tokens_per_minute: int | None

    @property
    def given(self) -> bool:
        return (self.limit_usd, self.requests_per_minute, self.tokens_per_minute) != (None, None, None)

    def set(self, connection: Connection, key_id: str) -> list[BudgetStatus]:
        """Gives the key these limits; all its budgets as they are then."""
        from pointsman.budgets.manage import set_key_budget

        set_key_budget(
            connection,
            key_id,
            period=self.period,
            limit_usd=self.limit_usd,
            requests_per_minute=self.requests_per_minute,
            tokens_per_minute=self.tokens_per_minute,
        )
        return budgets_of(connection, key_id)


def budget_command(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The key's id, from `pointsman keys list`.")],
    budget: BudgetUsd = None,
    period: Period = "day",
    requests_per_minute: RequestsPerMinute = None,
    tokens_per_minute: TokensPerMinute = None,
    remove: Annotated[bool, typer.Option("--remove", help="End all its budgets.")] = False,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    from pointsman.budgets.manage import remove_key_budgets
    from pointsman.ids import is_uuid

    limits = read_limits(budget, period, requests_per_minute, tokens_per_minute)
    if remove and limits.given:
        raise UserError("--remove ends all budgets of the key, and takes no limits beside it")
    if not is_uuid(key_id):  # a key itself, pasted by mistake, is not to be printed
        raise UserError(f"ID: expected a key's id, from `pointsman keys list`, got {key_id[:7]!r}")
    with log_database(*opened(config)) as engine, engine.begin() as connection:
        if remove:
            remove_key_budgets(connection, key_id)
        budgets = limits.set(connection, key_id) if limits.given else budgets_of(connection, key_id)
    if json:
        print_json([asdict(made) for made in budgets])
        return
    for made in budgets:
        say(out(), budget_line(made))
    if not budgets:
        say(out(), "no limits")


def budgets_of(connection: Connection, key_id: str) -> list[BudgetStatus]:
    """A key's budgets; raises where there is no such key."""
    from pointsman.budgets.manage import list_budgets, require_key

    require_key(connection, key_id)
    return [made for made in list_budgets(connection) if made.key_id == key_id]


def budget_line(budget: BudgetStatus) -> str:
    """`spent $1.20 of $5.00 a day, resets 2026-06-02 00:00 UTC; 60 requests a minute`."""
    per = "in all" if budget.period == "total" else f"a {budget.period}"
    spent = f"spent {usd(budget.spent_usd)}"
    if budget.limit_usd is not None:
        spent += f" of {usd(budget.limit_usd)} {per}"
    if budget.limit_usd is not None and budget.resets_at is not None:
        spent += f", resets {budget.resets_at:%Y-%m-%d %H:%M} UTC"
    rates = [(budget.requests_per_minute, "requests"), (budget.tokens_per_minute, "tokens")]
    return "; ".join([spent, *(f"{rate} {what} a minute" for rate, what in rates if rate is not None)])


def read_limits(
    budget: str | None, period: str, requests_per_minute: int | None, tokens_per_minute: int | None
) -> Limits:
    """The options' limits; raises for what is no amount and no period."""
    from pointsman.words import BudgetPeriod, members

    if period not in members(BudgetPeriod):
        raise UserError(f"--period: expected one of {', '.join(members(BudgetPeriod))}, got {period!r}")
    try:
        amount = None if budget is None else Decimal(budget.removeprefix("$"))
    except InvalidOperation:
        raise UserError(f"--budget: expected an amount of USD, such as 5 or 0.50, got {budget!r}") from None
    return Limits(cast("BudgetPeriod", period), amount, requests_per_minute, tokens_per_minute)
