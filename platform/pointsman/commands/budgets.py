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

BUDGET_HELP = """Show the budgets of a key or of a whole project, or change them.

What was spent in the period stays; a limit that is not named stays as it
is. Gateways know it within two seconds. A project's budget binds all its
keys together, each beside its own.

Examples:
  pointsman keys budget ID                         what it may spend, and has spent
  pointsman keys budget ID --budget 20             20 USD a day
  pointsman keys budget ID --budget 300 --period month
  pointsman keys budget --project shop --budget 1000 --period month
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

    def set(self, connection: Connection, project_id: str, key_id: str | None) -> None:
        """Gives a key, or with None a project, these limits."""
        from pointsman.budgets.manage import set_budget

        set_budget(
            connection,
            project_id=project_id,
            key_id=key_id,
            period=self.period,
            limit_usd=self.limit_usd,
            requests_per_minute=self.requests_per_minute,
            tokens_per_minute=self.tokens_per_minute,
        )


def budget_command(
    key_id: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="The key's id, from `pointsman keys list`.", show_default=False),
    ] = None,
    project: Annotated[
        str | None, typer.Option("--project", help="The whole of this project, in place of a key.", show_default=False)
    ] = None,
    budget: BudgetUsd = None,
    period: Period = "day",
    requests_per_minute: RequestsPerMinute = None,
    tokens_per_minute: TokensPerMinute = None,
    remove: Annotated[bool, typer.Option("--remove", help="End all budgets of the key or project.")] = False,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    from pointsman.budgets.manage import remove_budgets

    limits = read_limits(budget, period, requests_per_minute, tokens_per_minute)
    if remove and limits.given:
        raise UserError("--remove ends all budgets, and takes no limits beside it")
    with log_database(*opened(config)) as engine, engine.begin() as connection:
        project_id = _bound(connection, key_id, project)
        if remove:
            remove_budgets(connection, project_id=project_id, key_id=key_id)
        if limits.given:
            limits.set(connection, project_id, key_id)
        budgets = budgets_of(connection, project_id, key_id)
    if json:
        print_json([asdict(made) for made in budgets])
        return
    for made in budgets:
        say(out(), budget_line(made))
    if not budgets:
        say(out(), "no limits")


def budgets_of(connection: Connection, project_id: str, key_id: str | None) -> list[BudgetStatus]:
    """The budgets of a key, or with None of a project itself."""
    from pointsman.budgets.manage import list_budgets

    return [made for made in list_budgets(connection) if (made.project_id, made.key_id) == (project_id, key_id)]


def _bound(connection: Connection, key_id: str | None, project: str | None) -> str:
    """The id of the project that is meant, or that the key belongs to."""
    from pointsman.budgets.manage import require_key
    from pointsman.identity import ensure_project
    from pointsman.ids import is_uuid

    if (key_id is None) == (project is None):
        raise UserError("expected either a key's ID or --project, and not both")
    if project is not None:
        return ensure_project(connection, project)
    assert key_id is not None
    if not is_uuid(key_id):  # a key itself, pasted by mistake, is not to be printed
        raise UserError(f"ID: expected a key's id, from `pointsman keys list`, got {key_id[:7]!r}")
    return require_key(connection, key_id)


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
