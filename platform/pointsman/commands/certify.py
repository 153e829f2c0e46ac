"""`pointsman certify`: what may be claimed, computed again from the log."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pointsman.commands.acting import DEFAULT_PROJECT, Project, place
from pointsman.commands.edge import FAILED
from pointsman.commands.options import DATA, ConfigFile, Json
from pointsman.commands.output import out, print_json, say

HELP = """Compute a certificate again from the log, and say whether it still holds.

It holds while its numbers come out and what it assumes is still so: the same
workers, no drift alarm, its dial in force. Without an ID it lists them.

Examples:
  pointsman certify
  pointsman certify 0198c5a2-3f10-7c1e-9a53-0242ac120002

Exit codes: 0 it holds; 1 it does not; 2 there is no such certificate.
"""
SAID = {
    "better_than_incumbent": "better than the incumbent",
    "best_of_finalists": "within ε of the best of the finalists",
    "oracle_of_pool": "within ε of the oracle of this pool",
    "cheap_routing": "the cheap worker fails at most so often",
}


def certify_command(
    certificate_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="The certificate's id.", show_default=False)
    ] = None,
    project: Project = DEFAULT_PROJECT,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    if certificate_id is None:
        _list(project, json, config)
        return
    from pointsman.promotion.certify import find_certificate, recheck

    with place(config, project) as at, at.begin() as connection:
        row = find_certificate(connection, at.project, certificate_id)
        checked = recheck(connection, at.project, certificate_id, at.now)
    if json:
        print_json({**certificate_json(row), **vars(checked)})
    else:
        _show(row, checked)
    if not checked.holds:
        raise typer.Exit(FAILED)


def certificate_json(row: Any) -> dict[str, Any]:
    """What a certificate says, with everything that it rests on."""
    names = (
        "id", "claim", "router_version_id", "incumbent_id", "gate_id", "alpha", "method", "window_start", "window_end",
        "assumptions", "numbers", "data_hash", "spec_hash", "pool_epoch", "judge_units", "holds", "created_at",
        "checked_at",
    )  # fmt: skip
    return {name: getattr(row, name) for name in names}


def register(app: typer.Typer) -> None:
    """Adds the command `certify`."""
    app.command("certify", help=HELP, rich_help_panel=DATA)(certify_command)


def _list(project: str, json: bool, config: Any) -> None:
    from pointsman.promotion.certify import certificates

    with place(config, project) as at, at.begin() as connection:
        rows = certificates(connection, at.project)
    if json:
        print_json([certificate_json(row) for row in rows])
        return
    if not rows:
        say(out(), "no certificates; a gate that is passed, `pointsman optimize` and `pointsman dial` make them")
        return
    for row in rows:
        verdict = "holds" if row.holds else "does not hold"
        say(out(), f"{row.id}  {SAID[row.claim]}: {verdict}", "green" if row.holds else "red")
        checked = f"checked {row.checked_at:%Y-%m-%d %H:%M}"
        say(out(), f"    of router version {row.router_version_id}, α = {row.alpha:.4g}, {checked}", "dim")


def _show(row: Any, checked: Any) -> None:
    console = out()
    verdict = "it holds" if checked.holds else "it does not hold"
    say(console, f"{SAID[row.claim]}: {verdict}", "green" if checked.holds else "red")
    say(console, f"  of router version {row.router_version_id}, with error {row.alpha:.4g}")
    say(console, f"  by {row.method}")
    say(
        console, f"  on {row.window_start:%Y-%m-%d %H:%M} to {row.window_end:%Y-%m-%d %H:%M}, data {row.data_hash[:12]}"
    )
    if row.judge_units:
        say(console, "  in judge units: a judge's scores that were not calibrated are among the rewards", "yellow")
    again = checked.numbers or {}
    for name, value in row.numbers.items():
        if isinstance(value, int | float):
            now = f", now {_number(again[name])}" if name in again and again[name] != value else ""
            say(console, f"  {name}: {_number(value)}{now}")
    for fault in checked.faults:
        say(console, f"  against it: {fault}", "red")
    for remark in checked.remarks:
        say(console, f"  note: {remark}", "yellow")
    say(console, "  it assumes:", "dim")
    for assumption in row.assumptions:
        say(console, f"    {assumption}", "dim")


def _number(value: float) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)
