"""`pointsman promote` and `pointsman rollback`: which router serves."""

from __future__ import annotations

from typing import Annotated

import typer

from pointsman.commands.acting import DEFAULT_PROJECT, Project, Reason, Version, place
from pointsman.commands.options import RUNNING, ConfigFile, Json
from pointsman.commands.output import notes, out, print_json, say

PROMOTE_HELP = """Make a router version serve, on every gateway, within a second or so.

It is refused while no certificate says that the version is better than what
serves: `pointsman gate start VERSION` gathers one from live traffic,
`pointsman optimize` one from audited rows. --uncertified promotes it all the
same, and the record says so.

What decides where the new router cannot is the rest of the file's chain, or
the version that --fallback names.

Examples:
  pointsman gate versions                       what there is
  pointsman promote 0f3c9a1e --reason "passed its gate"
  pointsman rollback                            undo it
"""
ROLLBACK_HELP = """Undo the last promotion: the router before it serves again.

Without an earlier one the routers of pointsman.toml serve.

Example:
  pointsman rollback --reason "answers got worse"
"""


def promote_command(
    version: Version,
    reason: Reason = None,
    fallback: Annotated[
        str | None, typer.Option("--fallback", metavar="VERSION", help="Who decides where it cannot.")
    ] = None,
    uncertified: Annotated[bool, typer.Option("--uncertified", help="Without a certificate.")] = False,
    project: Project = DEFAULT_PROJECT,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    from pointsman.actions.routers import promote

    with place(config, project) as at:
        serving = at.serving()
        with at.begin() as connection:
            done = promote(
                connection, at.actor, at.project, version, at.now, reason=reason, fallback=fallback,
                uncertified=uncertified, cards_hash=at.cards_hash(), serving=serving,
            )  # fmt: skip
    if json:
        print_json({"version": done.id, "kind": done.kind, "previous": serving})
        return
    say(out(), f"{done.kind}@{done.id} serves")
    say(notes(), "gateways take it within seconds; `pointsman rollback` undoes it", "dim")


def rollback_command(
    reason: Reason = None, project: Project = DEFAULT_PROJECT, json: Json = False, config: ConfigFile = None
) -> None:
    from pointsman.actions.routers import roll_back

    with place(config, project) as at, at.begin() as connection:
        back = roll_back(connection, at.actor, at.project, at.now, reason=reason, cards_hash=at.cards_hash())
    if json:
        print_json({"version": back})
    else:
        say(out(), f"{back} serves again" if back else "the routers of pointsman.toml serve again")


def register(app: typer.Typer) -> None:
    """Adds the commands `promote` and `rollback`."""
    app.command("promote", help=PROMOTE_HELP, rich_help_panel=RUNNING)(promote_command)
    app.command("rollback", help=ROLLBACK_HELP, rich_help_panel=RUNNING)(rollback_command)
