"""`pointsman decisions`: the newest decisions, and one decision whole."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pointsman.commands.client import GatewayClient, GatewayError
from pointsman.commands.edge import ListsByDefault
from pointsman.commands.options import ASKING, ConfigFile, Json, opened
from pointsman.commands.output import notes, out, print_json, say
from pointsman.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

    from pointsman.queries import DecisionsPage

HELP = """Show what was decided: the newest decisions, or one of them whole.

Examples:
  pointsman decisions
  pointsman decisions --worker small --outcome upstream_error --limit 50
  pointsman decisions --search '"second warning" -spam' --json
  pointsman decisions show 0198c5a2-3f10-7c1e-9a53-0242ac120002
"""
LIST_HELP = """The newest decisions on traffic, newest first.

--search takes words, "a phrase", -not and `or`. The last line says how to
see older ones.
"""
SHOW_HELP = """One decision: request, eligible workers, scores, probabilities, router
reply, calls, outcome, feedback.

ID is the x-pointsman-decision-id header of an answer, or the id of the
completion.
"""


def list_command(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=500, help="How many.")] = 20,
    worker: Annotated[str | None, typer.Option("--worker", help="Only those that chose this worker.")] = None,
    outcome: Annotated[
        str | None, typer.Option("--outcome", metavar="STATUS", help="Only those that ended so, such as ok or timeout.")
    ] = None,
    search: Annotated[str | None, typer.Option("--search", help="Words of the request.")] = None,
    episode: Annotated[str | None, typer.Option("--episode", metavar="ID", help="Only those of this episode.")] = None,
    before: Annotated[str | None, typer.Option("--before", metavar="ID", help="Only those older than this.")] = None,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    from pointsman.commands.decision_list import show_page

    page = read_page(config, limit, before, worker=worker, outcome=outcome, search=search, episode=episode)
    if json:
        print_json({"decisions": [asdict(line) for line in page.rows], "older": page.older})
        return
    show_page(out(), page)
    if page.older:
        say(notes(), f"older: the same with --before {page.older}", "dim")


def show_command(
    decision_id: Annotated[str, typer.Argument(metavar="ID", help="Of a decision or a completion.")],
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    from pointsman.commands.decision_tree import show_record

    record = read_record(config, decision_id)
    if json:
        print_json(record)
    else:
        show_record(out(), record)


def register(app: typer.Typer) -> None:
    """Adds the commands `decisions list` and `decisions show`; `decisions` alone lists."""
    group = typer.Typer(cls=ListsByDefault, help=HELP, no_args_is_help=False)
    group.command("list", help=LIST_HELP)(list_command)
    group.command("show", help=SHOW_HELP)(show_command)
    app.add_typer(group, name="decisions", rich_help_panel=ASKING)


def read_page(
    config: Path | None,
    limit: int,
    before: str | None,
    *,
    worker: str | None,
    outcome: str | None,
    search: str | None,
    episode: str | None,
) -> DecisionsPage:
    """One page of the log, of all projects."""
    from pointsman.commands.database import log_database
    from pointsman.queries import DecisionFilter, decisions_page
    from pointsman.words import OutcomeStatus, members

    if outcome is not None and outcome not in members(OutcomeStatus):
        raise UserError(f"--outcome: expected one of {', '.join(members(OutcomeStatus))}, got {outcome!r}")
    filters = DecisionFilter(
        search=search,
        worker=worker,
        status=outcome,  # type: ignore[arg-type]  # checked above
        episode_id=episode,
    )
    with log_database(*opened(config)) as engine:
        return decisions_page(engine, None, filters, before, limit)


def read_record(config: Path | None, identity: str) -> dict[str, Any]:
    """The whole record, by the id of a decision or of a completion."""
    from pointsman.commands.database import log_database
    from pointsman.ids import is_uuid
    from pointsman.queries import decision_record, find_decision

    settings, read = opened(config)
    with log_database(settings, read) as engine:
        decision_id = identity if is_uuid(identity) else find_decision(engine, None, identity)
        record = decision_record(engine, None, decision_id) if decision_id else None
    if record is None and decision_id:
        record = _on_its_way(GatewayClient.of(settings, read), decision_id)
    if record is None:
        raise UserError(f"no decision {identity} is in the log; `pointsman decisions` lists those that are")
    return record


def _on_its_way(client: GatewayClient, decision_id: str) -> dict[str, Any] | None:
    """The record that a running gateway still holds in memory, before it is in the database."""
    try:
        reply = client.get(f"/v1/decisions/{decision_id}")
    except GatewayError:
        return None
    return reply.content if reply.status == 200 else None
