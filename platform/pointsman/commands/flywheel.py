"""`pointsman flywheel`: from the log to a router that serves, link by link."""

from __future__ import annotations

from typing import Annotated

import typer

from pointsman.commands.acting import DEFAULT_PROJECT, Project, Reason, place
from pointsman.commands.edge import ListsByDefault
from pointsman.commands.flywheel_text import show_turn, show_turns, turn_json
from pointsman.commands.options import RUNNING, ConfigFile, Json
from pointsman.commands.output import notes, out, print_json, say

HELP = """Make a better router of the log, and let the gate decide.

A turn goes audit rows → labels → baselines → SFT → evolution → evaluation →
shadow → canary → gate. It stops at the first link that does not pay, and says
why. Each link is a job that survives kill -9; the worker (`pointsman worker`,
or `pointsman up`) takes the turn further by itself.

\\[flywheel] in pointsman.toml says when a turn is opened by itself, what its
links do, and whether a person or the gate promotes.

Examples:
  pointsman flywheel need             has enough come in for a turn to pay?
  pointsman flywheel start
  pointsman flywheel                  turns, newest first
  pointsman flywheel show ID          the story of one
  pointsman flywheel stop ID --reason "another data set comes first"
"""

TurnId = Annotated[str, typer.Argument(metavar="ID", help="The turn's id, from `pointsman flywheel`.")]


def need_command(project: Project = DEFAULT_PROJECT, json: Json = False, config: ConfigFile = None) -> None:
    from pointsman.flywheel.job import wanted

    with place(config, project) as at, at.begin() as connection:
        found = wanted(connection, at.project, at.needed)
    if json:
        print_json({"enough": found.enough, "why": found.why})
    else:
        say(out(), f"{'enough' if found.enough else 'not enough'}: {found.why}", "green" if found.enough else "yellow")


def start_command(
    force: Annotated[bool, typer.Option("--force", help="Of however little information.")] = False,
    project: Project = DEFAULT_PROJECT,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    from pointsman.actions.turns import start_turn

    with place(config, project) as at:
        turn = start_turn(at.engine, at.actor, at.project, at.needed, at.now, force=force)
    if json:
        print_json(turn_json(turn))
        return
    say(out(), turn.id)
    say(notes(), f"opened: {turn.opened_because}", "dim")
    say(notes(), f"the worker takes it on; `pointsman flywheel show {turn.id}` tells how far it is", "dim")


def list_command(project: Project = DEFAULT_PROJECT, json: Json = False, config: ConfigFile = None) -> None:
    from pointsman.flywheel.store import turns

    with place(config, project) as at, at.begin() as connection:
        found = turns(connection, at.project)
    if json:
        print_json([turn_json(turn) for turn in found])
    else:
        show_turns(found)


def show_command(
    turn_id: TurnId, project: Project = DEFAULT_PROJECT, json: Json = False, config: ConfigFile = None
) -> None:
    from pointsman.flywheel.store import turn_of

    with place(config, project) as at, at.begin() as connection:
        turn = turn_of(connection, at.project, turn_id)
    if json:
        print_json(turn_json(turn))
    else:
        show_turn(turn)


def stop_command(
    turn_id: TurnId, reason: Reason = None, project: Project = DEFAULT_PROJECT, json: Json = False,
    config: ConfigFile = None,
) -> None:  # fmt: skip
    from pointsman.actions.turns import stop_turn

    with place(config, project) as at:
        turn = stop_turn(at.engine, at.actor, at.project, turn_id, at.now, reason=reason)
    if json:
        print_json(turn_json(turn))
    else:
        say(out(), f"stopped {turn_id}; what serves now serves on")


def register(app: typer.Typer) -> None:
    """Adds `flywheel need, start, list, show, stop`; `flywheel` alone lists."""
    group = typer.Typer(cls=ListsByDefault, help=HELP)
    group.command("need", help="Whether enough has come in for a turn to pay.")(need_command)
    group.command("start", help="Open a turn; the worker takes it on.")(start_command)
    group.command("list", help="The project's turns, newest first.")(list_command)
    group.command("show", help="The story of one turn: its links, what they found, why it ended.")(show_command)
    group.command("stop", help="End a turn: its jobs are cancelled, its gate stops.")(stop_command)
    app.add_typer(group, name="flywheel", rich_help_panel=RUNNING)
