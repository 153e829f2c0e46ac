"""`pointsman simulate`: what a change would do, on logged data, before it is made."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Annotated

import typer

from pointsman.commands.acting import DEFAULT_PROJECT, Project, place
from pointsman.commands.options import RUNNING, ConfigFile, Json
from pointsman.commands.output import out, print_json, say
from pointsman.errors import UserError

if TYPE_CHECKING:
    from pointsman.flywheel.pool_change import Foretold
    from pointsman.pool import Price

HELP = """What a change would do, seen on logged data.

Examples:
  pointsman simulate pool-change --remove small
  pointsman simulate pool-change --reprice small --input 0.2 --output 0.8
  pointsman simulate pool-change --reversion small      another model behind it
  pointsman simulate pool-change --add newcomer
"""
Named = Annotated[str | None, typer.Option(metavar="WORKER", show_default=False)]
UsdIn = Annotated[str | None, typer.Option("--input", metavar="USD", help="Per million tokens.", show_default=False)]
UsdOut = Annotated[str | None, typer.Option("--output", metavar="USD", help="Per million tokens.", show_default=False)]


def pool_change_command(
    remove: Named = None,
    reversion: Named = None,
    reprice: Named = None,
    add: Named = None,
    input_price: UsdIn = None,
    output_price: UsdOut = None,
    days: Annotated[int, typer.Option("--days", min=1, max=3_650, help="How far back to look.")] = 30,
    project: Project = DEFAULT_PROJECT,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    """Where a worker's traffic would go, what that would cost and be worth. Nothing is changed."""
    from pointsman.flywheel.pool_change import foretell

    given = {"remove": remove, "reversion": reversion, "reprice": reprice, "add": add}
    asked = [(kind, worker) for kind, worker in given.items() if worker is not None]
    if len(asked) != 1:
        raise UserError("expected one of --remove, --reversion, --reprice and --add, with a worker's name")
    kind, worker = asked[0]
    price = _price(input_price, output_price) if kind == "reprice" else None
    with place(config, project) as at, at.begin() as connection:
        epsilon = at.config.exploration.epsilon if at.config else 0.05
        since = at.now - timedelta(days=days)
        found = foretell(connection, at.project, kind, worker, since=since, price=price, epsilon=epsilon)  # type: ignore[arg-type]
    if json:
        print_json(asdict(found))
    else:
        _show(found, days)


def register(app: typer.Typer) -> None:
    """Adds `simulate pool-change`."""
    group = typer.Typer(help=HELP, no_args_is_help=True)
    group.command("pool-change")(pool_change_command)
    app.add_typer(group, name="simulate", rich_help_panel=RUNNING)


def _price(input_price: str | None, output_price: str | None) -> Price:
    from pointsman.pool import Price

    if input_price is None or output_price is None:
        raise UserError("--reprice needs --input and --output, USD per million tokens")
    try:
        new_in, new_out = Decimal(input_price), Decimal(output_price)
    except InvalidOperation:
        raise UserError("--input and --output: expected USD per million tokens, such as 0.25") from None
    if not (new_in.is_finite() and new_out.is_finite() and new_in >= 0 and new_out >= 0):
        raise UserError("--input and --output: expected USD per million tokens, 0 or more")
    return Price(new_in, new_out, new_in)


def _show(found: Foretold, days: int) -> None:
    console = out()
    say(console, f"{found.kind} {found.worker}, on {found.decisions} decisions of the last {days} days")
    if found.share is not None:
        share, low, high = found.share
        say(console, f"  {found.moved} of them chose it first: {share:.1%} [{low:.1%}, {high:.1%}]")
    for name, n in found.to.items():
        say(console, f"    {n:>7} would go to {name}")
    if found.value is not None:
        value = found.value
        told = f"{value.before:.4f} before, {value.after:.4f} after: {value.difference:+.4f}"
        say(console, f"  on {value.rows} audited requests {told} [{value.low:+.4f}, {value.high:+.4f}]")
    if found.cost_before is not None and found.cost_after is not None:
        say(console, f"  ${found.cost_before:.6f} a request before, ${found.cost_after:.6f} after")
    for note in found.notes:
        say(console, f"  {note}", "dim")
