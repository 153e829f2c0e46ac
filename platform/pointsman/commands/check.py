"""`pointsman check`: is the configuration right, what does it say, what is odd in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pointsman.commands.edge import USER_ERROR
from pointsman.commands.options import SETTING_UP, ConfigFile, Json
from pointsman.commands.output import cell, out, print_json, say, table
from pointsman.errors import ConfigError

if TYPE_CHECKING:
    from pointsman.config import Config, Settings
    from pointsman.config.model import WorkerConfig

HELP = """Check pointsman.toml, and show what it says.

Every fault is a line of its own: file, key, what was expected. Nothing is
contacted; `pointsman doctor` does that. Warnings do not change the exit
code.

Examples:
  pointsman check
  pointsman check --file team.toml --json
  pointsman check --keys                every section and key, with type and default
  pointsman check --keys --markdown     the same as a page

Exit codes: 0 it is right; 2 it has faults.
"""


def check_command(
    file: Annotated[
        Path | None, typer.Option("--file", "-f", metavar="FILE", help="The file to check.", show_default=False)
    ] = None,
    keys: Annotated[bool, typer.Option("--keys", help="List every key that the file may have.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="With --keys: as Markdown.")] = False,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    from pointsman.commands.check_keys import show_keys
    from pointsman.config import Settings, load_config

    if keys:
        show_keys(as_json=json, as_markdown=markdown)
        return
    settings = Settings.read(config=file or config)
    try:
        read = load_config(settings.config_file)
    except ConfigError as error:
        if not json:
            raise
        print_json({"file": str(settings.config_file), "ok": False, "errors": error.problems})
        raise typer.Exit(USER_ERROR) from None
    found = summary(read, settings)
    if json:
        print_json(found)
    else:
        _show(found)


def register(app: typer.Typer) -> None:
    """Adds the command `check`."""
    app.command("check", help=HELP, rich_help_panel=SETTING_UP)(check_command)


def summary(config: Config, settings: Settings) -> dict[str, Any]:
    """What the configuration says, in JSON's values. Holds no secret, only whether each is set."""
    from pointsman.config.advice import warnings
    from pointsman.config.load import config_hash

    router = config.router
    return {
        "file": str(settings.config_file),
        "ok": True,
        "hash": config_hash(config),
        "workers": [_worker(worker, settings) for worker in config.workers],
        "router": {"chain": list(router.chain), "model": router.model, "default": router.default},
        "exploration": config.exploration.epsilon,
        "sandbox": config.sandbox is not None,
        "warnings": warnings(config, settings),
    }


def _worker(worker: WorkerConfig, settings: Settings) -> dict[str, Any]:
    from pointsman.config.advice import worker_variables

    price = worker.price
    return {
        "name": worker.name,
        "model": worker.model,
        "addresses": [e.base_url for e in worker.endpoints] or ([worker.base_url] if worker.base_url else []),
        "price": {"input": f"{price.input:f}", "output": f"{price.output:f}"} if price else None,
        "context_window": worker.context_window,
        "capabilities": list(worker.capabilities),
        "tags": list(worker.tags),
        "keys": {name: settings.secret(name) is not None for name in worker_variables(worker)},
    }


def _show(found: dict[str, Any]) -> None:
    console = out()
    router = found["router"]
    say(console, f"{found['file']}: right", "green")
    if found["sandbox"]:
        say(console, "the workers are the sandbox's: a simulation")
    shown = table("worker", "in / out, $ per M", "window", "capabilities", "key", right=("in / out, $ per M", "window"))
    for worker in found["workers"]:
        price, window = worker["price"], worker["context_window"]
        shown.add_row(
            cell(worker["name"]),
            cell(f"{price['input']} / {price['output']}" if price else "unknown", "" if price else "yellow"),
            cell(f"{window:,}" if window else None),
            cell(", ".join(worker["capabilities"]) or None),
            _keys(worker["keys"]),
        )
    console.print(shown)
    say(console, f"router     {' → '.join(router['chain'])}; router LLM {router['model'] or 'none'}")
    say(console, f"default    {router['default'] or 'the cheapest worker'}")
    say(console, f"exploring  {found['exploration']:.0%} of requests")
    for warning in found["warnings"]:
        say(console, f"warning: {warning}", "yellow")


def _keys(keys: dict[str, bool]) -> Any:
    if not keys:
        return cell("none needed", "dim")
    words = "\n".join(f"{name} {'set' if is_set else 'unset'}" for name, is_set in keys.items())
    return cell(words, "" if all(keys.values()) else "yellow")
