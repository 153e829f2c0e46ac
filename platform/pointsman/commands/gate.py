"""`pointsman gate`: letting a candidate in by evidence from live traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

from pointsman.commands.acting import DEFAULT_PROJECT, Project, Reason, Version, place
from pointsman.commands.edge import ListsByDefault
from pointsman.commands.gate_difference import agreed, diff_command, difference_of
from pointsman.commands.gate_text import gate_json, list_json, show_gate, show_gates, show_versions, version_json
from pointsman.commands.options import RUNNING, ConfigFile, Json
from pointsman.commands.output import notes, out, print_json, say
from pointsman.errors import UserError

if TYPE_CHECKING:
    from pointsman.words import GateMode

HELP = """Let a candidate in by what happens to live requests.

Where the candidate and the router that serves pick different workers, the
candidate's pick is taken for a share of the conversations. The rewards of
both are compared as they come; the candidate passes when it is better (error
below α, at any time), and is taken back when it is worse, fails too often, or
is too slow or too dear. All terms are fixed before the first row.

Examples:
  pointsman gate versions                 router versions, newest first
  pointsman gate diff 0f3c9a1e            what it says differently from what serves
  pointsman gate start 0f3c9a1e           a canary for this candidate
  pointsman gate                          gates, and how far they are
  pointsman gate show ID
  pointsman gate stop ID --reason "another is better"
  pointsman gate shadow 0f3c9a1e          only log what it would pick
"""
START_HELP = """Register a gate for a candidate, and start its canary.

\\[gate] in pointsman.toml has the terms: error, margin, reward, ramp,
guardrails. They are written down now and do not change any more. In mode
`propose` a person is shown what the candidate says differently, and promotes
what passed; in mode `auto` it serves at once.

The worker (`pointsman worker`, or `pointsman up`) takes the rows. A project
has one gate at a time, and each spends a part of its error for good.

Examples:
  pointsman gate start 0f3c9a1e
  pointsman gate start 0f3c9a1e --epsilon 0.02      not worse by more than 0.02
  pointsman gate start 0f3c9a1e --even              50/50 from the first row
"""

GateId = Annotated[str, typer.Argument(metavar="ID", help="The gate's id, from `pointsman gate`.")]


def start_command(
    version: Version,
    incumbent: Annotated[
        str | None,
        typer.Option("--incumbent", metavar="VERSION", help="What it is compared with. Default: what serves."),
    ] = None,
    mode: Annotated[str | None, typer.Option("--mode", help="auto or propose. Default: \\[gate] mode.")] = None,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", help="How much worse it may be. Default: \\[gate] epsilon.")
    ] = None,
    even: Annotated[bool, typer.Option("--even", help="50/50 from the first row: quickest, most at stake.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask after showing what is different.")] = False,
    reason: Reason = None,
    project: Project = DEFAULT_PROJECT,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    from pointsman.actions.gates import start_gate
    from pointsman.promotion.register import Overrides, gate_of
    from pointsman.promotion.versions import find_version

    overrides = Overrides(_mode(mode), epsilon, ((0, 0.5),) if even else None)
    with place(config, project) as at:
        serving = at.serving()
        with at.begin() as connection:
            against = find_version(connection, incumbent).id if incumbent is not None else serving
            found = difference_of(connection, at.project, version, against)
        if (overrides.mode or at.needed.gate.mode) == "propose":
            agreed(found, yes=yes)
        with at.begin() as connection:
            gate = start_gate(
                connection, at.actor, at.project, version, at.needed, at.now,
                serving=against, overrides=overrides, reason=reason,
            )  # fmt: skip
            row = gate_of(connection, at.project, gate)
    if json:
        print_json(gate_json(row))
        return
    say(out(), gate)
    alpha = row.terms["alpha"]
    say(notes(), f"registered with α = {alpha:.4g}; `pointsman gate show {gate}` says how far it is", "dim")


def list_command(project: Project = DEFAULT_PROJECT, json: Json = False, config: ConfigFile = None) -> None:
    from sqlalchemy import select

    from pointsman.promotion.register import GATE

    with place(config, project) as at, at.begin() as connection:
        query = select(GATE).where(GATE.c.project_id == at.project).order_by(GATE.c.id.desc()).limit(50)
        rows = list(connection.execute(query))
    if json:
        print_json(list_json(rows))
    else:
        show_gates(rows)


def show_command(
    gate_id: GateId, project: Project = DEFAULT_PROJECT, json: Json = False, config: ConfigFile = None
) -> None:
    from pointsman.promotion.gate_proof import gate_rows
    from pointsman.promotion.register import gate_of

    with place(config, project) as at, at.begin() as connection:
        row = gate_of(connection, at.project, gate_id)
        steps = gate_rows(connection, row.id)
    if json:
        print_json(gate_json(row, steps))
    else:
        show_gate(row, steps)


def stop_command(
    gate_id: GateId, reason: Reason = None, project: Project = DEFAULT_PROJECT, json: Json = False,
    config: ConfigFile = None,
) -> None:  # fmt: skip
    from pointsman.actions.gates import stop_gate

    with place(config, project) as at, at.begin() as connection:
        stop_gate(connection, at.actor, at.project, gate_id, at.now, reason=reason)
    if json:
        print_json({"id": gate_id, "state": "stopped"})
    else:
        say(out(), f"stopped {gate_id}; what serves now serves on, and the gate's α stays spent")


def versions_command(
    project: Project = DEFAULT_PROJECT,
    limit: Annotated[int, typer.Option("--limit", min=1, max=500, help="How many.")] = 20,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    from pointsman.promotion.certify import proof_of
    from pointsman.promotion.versions import in_state
    from pointsman.words import RouterState, members

    states = cast("list[RouterState]", list(members(RouterState)))
    with place(config, project) as at:
        serving = at.serving()
        with at.begin() as connection:
            found = in_state(connection, states, limit)
            proven = {one.id for one in found if proof_of(connection, at.project, one.id) is not None}
    if json:
        print_json([version_json(one, serving, proven) for one in found])
    else:
        show_versions(found, serving, proven)


def shadow_command(
    version: Version,
    off: Annotated[bool, typer.Option("--off", help="End it.")] = False,
    project: Project = DEFAULT_PROJECT,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    from pointsman.actions.routers import shadow

    with place(config, project) as at, at.begin() as connection:
        done = shadow(connection, at.actor, at.project, version, at.now, on=not off)
    if json:
        print_json({"version": done.id, "state": "candidate" if off else "shadow"})
    else:
        say(out(), f"{done.id} is {'no shadow any more' if off else 'a shadow: its picks are logged, without effect'}")


def register(app: typer.Typer) -> None:
    """Adds `gate start, diff, list, show, stop, versions, shadow`; `gate` alone lists."""
    group = typer.Typer(cls=ListsByDefault, help=HELP)
    group.command("start", help=START_HELP)(start_command)
    group.command("diff", help="What a candidate says differently from what serves.")(diff_command)
    group.command("list", help="The project's gates, newest first.")(list_command)
    group.command("show", help="One gate: its terms, its rows so far, and what they say.")(show_command)
    group.command("stop", help="End a gate without a verdict.")(stop_command)
    group.command("versions", help="Router versions, newest first, and which of them serves.")(versions_command)
    group.command("shadow", help="Let a candidate choose beside what serves, without effect.")(shadow_command)
    app.add_typer(group, name="gate", rich_help_panel=RUNNING)


def _mode(text: str | None) -> GateMode | None:
    from pointsman.words import GateMode, members

    if text is not None and text not in members(GateMode):
        raise UserError(f"--mode: expected one of {', '.join(members(GateMode))}, got {text!r}")
    return cast("GateMode | None", text)
