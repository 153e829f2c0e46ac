"""Builds the application: the commands of this package, then those of the entry points."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from typing import Annotated

import typer

from pointsman.commands import (
    agents,
    alarms,
    certify,
    check,
    decisions,
    dial,
    doctor,
    export,
    feedback,
    flywheel,
    gate,
    import_,
    init,
    jobs,
    keys,
    migrate,
    probe,
    promotion,
    reload,
    retention,
    route,
    sandbox,
    simulate,
    worker,
)
from pointsman.commands.edge import CommandGroup
from pointsman.commands.output import notes, say

GROUP = "pointsman.commands"
BUILT_IN = (
    init,
    agents,
    check,
    doctor,
    reload,
    migrate,
    route,
    decisions,
    feedback,
    keys,
    import_,
    export,
    retention,
    sandbox,
    jobs,
    worker,
    probe,
    gate,
    promotion,
    certify,
    dial,
    alarms,
    flywheel,
    simulate,
)

HELP = """Pointsman sends each request to the LLM that will answer it best, and logs
every decision.

First steps:
  pointsman init         writes pointsman.toml for your keys, or for the sandbox
  pointsman check        says what is wrong with it
  pointsman up           starts everything and prints what to try
  pointsman decisions    shows what was decided, and why

Every command has examples: pointsman COMMAND --help. With --json it
prints one JSON value.
"""
EPILOG = """POINTSMAN_HOME     the data folder (default ./.pointsman)
POINTSMAN_PORT     the gateway's port (default 8790)
POINTSMAN_CONFIG   the configuration file (default ./pointsman.toml)

Exit codes: 0 done · 1 it could not be done now · 2 a mistake in what was
given · 130 Ctrl-C"""


def build_app(plugged_in: Iterable[EntryPoint] | None = None) -> typer.Typer:
    """The application. `plugged_in` stands in for the installed entry points in tests."""
    app = typer.Typer(
        cls=CommandGroup,
        help=HELP,
        epilog=EPILOG,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for module in BUILT_IN:
        module.register(app)
    for entry in sorted(entry_points(group=GROUP) if plugged_in is None else plugged_in, key=lambda e: e.name):
        _plug_in(app, entry)
    return app


def _plug_in(app: typer.Typer, entry: EntryPoint) -> None:
    """Adds one entry point's commands; one whose extra is not installed leaves a note, not a traceback."""
    try:
        register: Callable[[typer.Typer], None] = entry.load()
    except ImportError as error:
        say(notes(), f"commands of {entry.name!r} are not available: {error}", "yellow")
        return
    register(app)


def _options(
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=lambda v: _version(v))
    ] = False,
) -> None:
    """The options of `pointsman` itself act in their callbacks."""


def _version(wanted: bool) -> None:
    if wanted:
        try:
            typer.echo(f"pointsman {version('pointsman')}")
        except PackageNotFoundError:
            typer.echo("pointsman, from a source tree that is not installed")
        raise typer.Exit
