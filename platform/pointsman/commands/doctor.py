"""`pointsman doctor`: one line for each thing that must be right, and what to do where it is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pointsman.commands.edge import FAILED
from pointsman.commands.options import SETTING_UP, ConfigFile, Json
from pointsman.commands.output import out, print_json, say
from pointsman.errors import ConfigError

if TYPE_CHECKING:
    from pointsman.commands.findings import Finding
    from pointsman.config import Settings

HELP = """Look at this installation, and say what to do about what is not right.

It reads the configuration, the data folder, the journal and the
database's schema, asks the gateway whether it is ready, and asks every
worker's address for its list of models, with the worker's key. No model
is called, and nothing is changed.

Examples:
  pointsman doctor
  pointsman doctor --timeout 10 --json

Exit codes: 0 nothing failed (there may be warnings); 1 something did.
"""

MARKS = {"ok": ("ok  ", "green"), "warn": ("warn", "yellow"), "fail": ("FAIL", "bold red")}


def doctor_command(
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, max=60, help="Seconds for each address.")] = 3.0,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    from pointsman.config import Settings

    findings = examine(Settings.read(config=config), timeout)
    failed = sum(finding.state == "fail" for finding in findings)
    if json:
        print_json({"ok": not failed, "checks": [asdict(finding) for finding in findings]})
    else:
        _show(findings)
    if failed:
        raise typer.Exit(FAILED)


def register(app: typer.Typer) -> None:
    """Adds the command `doctor`."""
    app.command("doctor", help=HELP, rich_help_panel=SETTING_UP)(doctor_command)


def examine(settings: Settings, timeout: float) -> list[Finding]:
    """Every check; those that need a configuration are left out where it has faults."""
    from pointsman.commands import check_addresses, check_jobs, check_machine
    from pointsman.config import load_config

    findings = [check_machine.python(), check_machine.folder(settings)]
    try:
        config = load_config(settings.config_file)
    except ConfigError as error:
        findings.append(check_machine.faulty(error))
        return [*findings, *check_machine.database(settings, None)]
    findings.append(check_machine.configuration(settings, config))
    findings.append(check_machine.journal(settings, config))
    findings += check_machine.database(settings, config)
    findings += check_jobs.jobs(settings, config)
    findings.append(check_addresses.gateway(settings, config))
    findings += check_addresses.keys(settings, config)
    findings += check_addresses.extras(config)
    findings += check_addresses.workers(settings, config, timeout)
    return findings


def _show(findings: Sequence[Finding]) -> None:
    console = out()
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        mark, style = MARKS[finding.state]
        console.print(f"[{style}]{mark}[/] ", end="")
        say(console, f"{finding.name:<{width}}  {finding.message}")
        if finding.advice:
            say(console, f"     {'':<{width}}  → {finding.advice}", "dim")
    counts = {state: sum(finding.state == state for finding in findings) for state in MARKS}
    say(console, f"{counts['ok']} ok, {counts['warn']} to look at, {counts['fail']} failed")
