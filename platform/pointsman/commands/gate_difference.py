"""`pointsman gate diff`: what a candidate says differently; `gate start` shows it before anything is registered."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from pointsman.commands.acting import DEFAULT_PROJECT, Project, Version, place
from pointsman.commands.options import ConfigFile, Json
from pointsman.commands.output import notes, out, print_json, say
from pointsman.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console
    from sqlalchemy import Connection

    from pointsman.promotion.difference import Difference

LONGEST = 700
"""Characters of a text that are shown; a card has 600 at most."""


def diff_command(
    version: Version,
    against: Annotated[
        str | None, typer.Option("--against", metavar="VERSION", help="Default: what serves.", show_default=False)
    ] = None,
    project: Project = DEFAULT_PROJECT,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    from pointsman.promotion.versions import find_version

    with place(config, project) as at:
        serving = at.serving()
        with at.begin() as connection:
            before = find_version(connection, against).id if against is not None else serving
            found = difference_of(connection, at.project, version, before)
    if json:
        print_json([vars(one) for one in found])
    else:
        show_difference(out(), found)


def difference_of(connection: Connection, project: str, version: str, against: str | None) -> Sequence[Difference]:
    """What `version` would change of `against` (None: of what the log says serves)."""
    from pointsman.promotion.difference import differences
    from pointsman.promotion.serving import incumbent
    from pointsman.promotion.versions import find_version, versions_of

    serving = against or incumbent(connection, project)
    before = versions_of(connection, [serving]).get(serving)  # None: what a gateway has just begun with
    return differences({} if before is None else before.config, find_version(connection, version).config)


def show_difference(console: Console, found: Sequence[Difference]) -> None:
    if not found:
        say(console, "nothing is different")
    for one in found:
        say(console, f"{one.part}:")
        for sign, text in (("-", one.before), ("+", one.after)):
            if text is not None:
                say(console, f"  {sign} {text[:LONGEST]}", "dim" if sign == "-" else "")


def agreed(found: Sequence[Difference], *, yes: bool) -> None:
    """Shows what is different, and has a person at a terminal say yes to it; raises `UserError` for a no."""
    show_difference(notes(), found)
    if not yes and sys.stdin.isatty() and not typer.confirm("Start the canary?", err=True):
        raise UserError("not started")
