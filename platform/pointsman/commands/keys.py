"""`pointsman keys`: making, listing and revoking the keys that applications send."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from pointsman.commands.budgets import (
    BUDGET_HELP,
    BudgetUsd,
    Period,
    RequestsPerMinute,
    TokensPerMinute,
    budget_command,
    budget_line,
    budgets_of,
    read_limits,
)
from pointsman.commands.database import log_database
from pointsman.commands.edge import ListsByDefault
from pointsman.commands.options import DATA, ConfigFile, Json, opened
from pointsman.commands.output import notes, out, print_json, say
from pointsman.errors import UserError

if TYPE_CHECKING:
    from pointsman.words import Scope

HELP = """Make, list, limit and revoke the keys of applications.

A key belongs to a project: it sees that project's decisions only. Its
text is shown once and kept nowhere; the log holds its hash. On this
machine no key is needed to try things.

Examples:
  pointsman keys create --project shop --owner ana
  KEY=$(pointsman keys create)                    the key alone goes to standard output
  pointsman keys create --budget 5 --period day --requests-per-minute 60
  pointsman keys list
  pointsman keys budget 0198c5a2-3f10-7c1e-9a53-0242ac120002 --budget 20
  pointsman keys revoke 0198c5a2-3f10-7c1e-9a53-0242ac120002
"""
CREATE_HELP = """Make a key, and print it once.

Scopes: serve (ask, and read the project's own decisions), feedback, jobs,
admin (everything).

A budget is in USD a period; a day and a month begin at midnight UTC. What
has no price is charged as the dearest worker of the pool.
"""


DEFAULT_SCOPES = ("serve", "feedback")


def create_command(
    project: Annotated[str, typer.Option("--project", help="Its project; made where there is none.")] = "default",
    owner: Annotated[str | None, typer.Option("--owner", help="Who answers for it.")] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option("--scope", help="What it may do. Repeatable. Default: serve and feedback.", show_default=False),
    ] = None,
    learn: Annotated[
        bool, typer.Option("--learn/--no-learn", help="Whether anything may be learned from its requests.")
    ] = True,
    explore: Annotated[
        bool, typer.Option("--explore/--no-explore", help="Whether its requests may go to a worker drawn at random.")
    ] = True,
    note: Annotated[str | None, typer.Option("--note", help="What it is for.")] = None,
    budget: BudgetUsd = None,
    period: Period = "day",
    requests_per_minute: RequestsPerMinute = None,
    tokens_per_minute: TokensPerMinute = None,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    from pointsman.budgets.manage import require_key
    from pointsman.identity import create_key, list_keys

    scopes = read_scopes(scope or DEFAULT_SCOPES)
    limits = read_limits(budget, period, requests_per_minute, tokens_per_minute)
    with log_database(*opened(config)) as engine, engine.begin() as connection:
        key = create_key(
            connection, project=project, scopes=scopes, owner=owner, learn=learn, explore=explore, note=note
        )
        made = list_keys(connection)[0]
        project_id = require_key(connection, made.id)
        if limits.given:
            limits.set(connection, project_id, made.id)
        budgets = budgets_of(connection, project_id, made.id)
    if json:
        limited = [asdict(each) for each in budgets]
        print_json({"key": key, "id": made.id, "project": project, "scopes": scopes, "budgets": limited})
        return
    typer.echo(key)
    say(notes(), f"a key of project {project} ({', '.join(scopes)}); this is the only time it is shown", "dim")
    say(notes(), f"gateways know it within two seconds; `pointsman keys revoke {made.id}` ends it", "dim")


def list_command(json: Json = False, config: ConfigFile = None) -> None:
    from pointsman.budgets.manage import list_budgets
    from pointsman.identity import list_keys

    with log_database(*opened(config)) as engine, engine.connect() as connection:
        rows = list_keys(connection)
        budgets = list_budgets(connection)
    by_key = {row.id: [budget for budget in budgets if budget.key_id == row.id] for row in rows}
    if json:
        print_json([asdict(row) | {"budgets": [asdict(each) for each in by_key[row.id]]} for row in rows])
        return
    if not rows:
        say(out(), "no keys; `pointsman keys create` makes one")
        return
    for row in rows:
        ended = f"revoked {row.revoked_at:%Y-%m-%d %H:%M}" if row.revoked_at else "in force"
        say(out(), f"{row.id}  {row.prefix}…  {ended}", "dim" if row.revoked_at else "")
        made = f"made {row.created_at:%Y-%m-%d %H:%M}" + (f" for {row.owner}" if row.owner else "")
        say(out(), f"    project {row.project}: {', '.join(row.scopes)}; {made}", "dim")
        for budget in by_key[row.id]:
            say(out(), f"    {budget_line(budget)}", "dim" if row.revoked_at else "")
    for budget in budgets:
        if budget.key_id is None:
            say(out(), f"the whole of project {budget.project}: {budget_line(budget)}")


def revoke_command(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The key's id, from `pointsman keys list`.")],
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    from pointsman.identity import revoke_key
    from pointsman.ids import is_uuid

    if not is_uuid(key_id):
        raise UserError(f"ID: expected a key's id, from `pointsman keys list`, got {key_id[:7]!r}")
    with log_database(*opened(config)) as engine, engine.begin() as connection:
        revoke_key(connection, key_id)
    if json:
        print_json({"id": key_id, "revoked": True})
    else:
        say(out(), f"revoked {key_id}; every gateway refuses it within two seconds")


def register(app: typer.Typer) -> None:
    """Adds `keys create`, `list`, `budget` and `revoke`; `keys` alone lists."""
    group = typer.Typer(cls=ListsByDefault, help=HELP)
    group.command("create", help=CREATE_HELP)(create_command)
    group.command("list", help="Every key, newest first; never its text.")(list_command)
    group.command("budget", help=BUDGET_HELP)(budget_command)
    group.command("revoke", help="End a key; every gateway refuses it within two seconds.")(revoke_command)
    app.add_typer(group, name="keys", rich_help_panel=DATA)


def read_scopes(names: Sequence[str]) -> list[Scope]:
    """The scopes of these names, each once."""
    from pointsman.words import Scope, members

    if unknown := sorted(set(names) - set(members(Scope))):
        raise UserError(f"--scope: expected one of {', '.join(members(Scope))}, got {unknown[0]!r}")
    return [word for word in get_args(Scope) if word in names]
