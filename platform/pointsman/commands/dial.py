"""`pointsman dial`: a cheap worker first, as far as its failure rate can be guaranteed."""

from __future__ import annotations

import typer

from pointsman.commands.acting import DEFAULT_PROJECT, Project, Reason, place
from pointsman.commands.edge import ListsByDefault
from pointsman.commands.options import RUNNING, ConfigFile, Json
from pointsman.commands.output import out, print_json, say

HELP = """Let a cheap worker answer what it can be trusted with.

\\[dial] names the worker and how often it may fail on what it gets. The
threshold comes from audited traffic: requests drawn at random that every
worker answered. It holds for one router version and one endpoint, and is
retired when either changes or a drift alarm is on.

Examples:
  pointsman dial calibrate
  pointsman dial                 what is in force
  pointsman dial off
"""


def calibrate_command(project: Project = DEFAULT_PROJECT, json: Json = False, config: ConfigFile = None) -> None:
    from pointsman.actions.dials import calibrate_dial

    with place(config, project) as at:
        serving = at.serving()
        with at.begin() as connection:
            done = calibrate_dial(connection, at.actor, at.project, at.needed, at.now, serving=serving)
    found = done.threshold
    if json:
        print_json({"id": done.dial_id, "router_version": done.version, **vars(found)})
        return
    say(out(), f"dial {done.dial_id} is in force: margin {found.value:.4g} and above")
    say(out(), f"  {found.cheap_share:.0%} of {found.n} audited requests lie there; {found.failures} of them failed")
    say(out(), f"  at most {found.upper:.1%} fail, with error {found.delta:g} (allowed: {found.limit:.0%})")


def show_command(project: Project = DEFAULT_PROJECT, json: Json = False, config: ConfigFile = None) -> None:
    from pointsman.promotion.threshold import dial_of

    with place(config, project) as at, at.begin() as connection:
        row = dial_of(connection, at.project)
    if json:
        print_json(None if row is None else dict(row._mapping))
    elif row is None:
        say(out(), "no dial is in force: the router decides alone; `pointsman dial calibrate` sets one")
    else:
        say(out(), f"dial {row.id}: {row.worker} answers where its margin is {row.threshold:.4g} or more")
        say(out(), f"  for scores of {row.router_version_id}; set {row.made_at:%Y-%m-%d %H:%M} by {row.made_by}")
        say(out(), f"  `pointsman certify {row.certificate_id}` says whether its guarantee holds", "dim")


def off_command(
    reason: Reason = None, project: Project = DEFAULT_PROJECT, json: Json = False, config: ConfigFile = None
) -> None:
    from pointsman.actions.dials import turn_off_dial

    with place(config, project) as at, at.begin() as connection:
        was = turn_off_dial(connection, at.actor, at.project, at.now, reason=reason)
    if json:
        print_json({"was_on": was})
    else:
        say(out(), "the router decides alone" if was else "no dial was in force")


def register(app: typer.Typer) -> None:
    """Adds `dial calibrate, show, off`; `dial` alone shows."""
    group = typer.Typer(cls=ListsByDefault, help=HELP)
    group.command("calibrate", help="Certify a threshold from audited traffic, and put it in force.")(calibrate_command)
    group.command("list", help="What is in force.", hidden=True)(show_command)
    group.command("show", help="What is in force.")(show_command)
    group.command("off", help="Let the router decide alone.")(off_command)
    app.add_typer(group, name="dial", rich_help_panel=RUNNING)
