"""`pointsman alarms`: what has changed since it was learned from."""

from __future__ import annotations

from typing import Annotated

import typer

from pointsman.commands.acting import DEFAULT_PROJECT, Project, Reason, place
from pointsman.commands.edge import ListsByDefault
from pointsman.commands.options import ASKING, ConfigFile, Json
from pointsman.commands.output import out, print_json, say

HELP = """Alarms that are on: drift, guardrails, workers that changed.

They are raised by gates and by the jobs `drift` and `canary`, shown in
/readyz and /metrics, and sent to the webhook of \\[alarms].

Examples:
  pointsman alarms
  pointsman alarms acknowledge ID        seen; it stays on
  pointsman alarms resolve ID            it is over, or was none
"""

AlarmId = Annotated[str, typer.Argument(metavar="ID", help="The alarm's id, from `pointsman alarms`.")]


def list_command(project: Project = DEFAULT_PROJECT, json: Json = False, config: ConfigFile = None) -> None:
    from pointsman.drift.alarms import alarms_on, described

    with place(config, project) as at, at.begin() as connection:
        rows = alarms_on(connection, at.project)
    if json:
        print_json([described(row) for row in rows])
        return
    if not rows:
        say(out(), "no alarm is on")
    for row in rows:
        seen = f", seen by {row.acknowledged_by}" if row.acknowledged_by else ""
        say(out(), f"{row.id}  {row.kind}  since {row.raised_at:%Y-%m-%d %H:%M}{seen}", "dim" if seen else "yellow")
        say(out(), f"    {row.message}")


def acknowledge_command(
    alarm_id: AlarmId, project: Project = DEFAULT_PROJECT, json: Json = False, config: ConfigFile = None
) -> None:
    from pointsman.actions.alarms import acknowledge_alarm

    with place(config, project) as at, at.begin() as connection:
        acknowledge_alarm(connection, at.actor, at.project, alarm_id, at.now)
    _told(alarm_id, "acknowledged", json)


def resolve_command(
    alarm_id: AlarmId, reason: Reason = None, project: Project = DEFAULT_PROJECT, json: Json = False,
    config: ConfigFile = None,
) -> None:  # fmt: skip
    from pointsman.actions.alarms import resolve_alarm

    with place(config, project) as at, at.begin() as connection:
        resolve_alarm(connection, at.actor, at.project, alarm_id, at.now, reason=reason)
    _told(alarm_id, "resolved", json)


def register(app: typer.Typer) -> None:
    """Adds `alarms list, acknowledge, resolve`; `alarms` alone lists."""
    group = typer.Typer(cls=ListsByDefault, help=HELP)
    group.command("list", help="The alarms that are on, newest first.")(list_command)
    group.command("acknowledge", help="Say that you have seen one; it stays on.")(acknowledge_command)
    group.command("resolve", help="Say that one is over.")(resolve_command)
    app.add_typer(group, name="alarms", rich_help_panel=ASKING)


def _told(alarm_id: str, what: str, json: bool) -> None:
    if json:
        print_json({"id": alarm_id, "state": what})
    else:
        say(out(), f"{what} {alarm_id}")
