"""`pointsman reload`: a checked configuration file into the running gateway, without a restart."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import typer

from pointsman.commands.client import GatewayClient, GatewayError
from pointsman.commands.options import RUNNING, ConfigFile, Json
from pointsman.commands.output import out, print_json, say

if TYPE_CHECKING:
    from pathlib import Path

    from pointsman.config import Settings

HELP = """Bring the changed pointsman.toml to the running gateway.

The file is checked first; with a fault nothing is sent. Requests that run
keep the configuration they began with. Host, ports, \\[database] and
\\[log] take effect at the next start only.

Example:
  pointsman reload

Exit codes: 0 the gateway serves the file; 1 it does not; 2 the file has
faults.
"""

PID_FILE = "serve.pid"
PATIENCE = 10.0
PAUSE = 0.1


@dataclass(frozen=True)
class Reloaded:
    """The generations before and after, and the hash of the configuration that now serves."""

    old: int | None
    new: int | None
    configuration: str


@dataclass(frozen=True)
class Clock:
    """Time for waiting, as an argument."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def reload_command(json: Json = False, config: ConfigFile = None) -> None:
    from pointsman.config import Settings

    done = reload(Settings.read(config=config), Clock())
    if json:
        print_json(asdict(done))
    elif done.old == done.new:
        say(out(), f"generation {done.new}: the gateway serves this file already")
    else:
        say(out(), f"generation {done.old} → {done.new}: the gateway serves the new file")


def register(app: typer.Typer) -> None:
    """Adds the command `reload`."""
    app.command("reload", help=HELP, rich_help_panel=RUNNING)(reload_command)


def reload(settings: Settings, clock: Clock, patience: float = PATIENCE) -> Reloaded:
    """Checks the file, signals the gateway, and waits until every process serves the file."""
    from pointsman.config import load_config
    from pointsman.config.load import config_hash

    config = load_config(settings.config_file)
    wanted = config_hash(config)
    client = GatewayClient.of(settings, config)
    before = client.get("/readyz").content
    _signal(settings.home / PID_FILE)
    # Processes share the port, and each poll reaches any of them: several in a row must agree.
    agreeing = 1 if config.gateway.workers == 1 else 3 * config.gateway.workers
    after = _await(client, wanted, agreeing, clock, patience)
    return Reloaded(before.get("generation"), after.get("generation"), wanted)


def _signal(pid_file: Path) -> None:
    """SIGHUP to the process that `serve` named."""
    absent = f"no gateway of this data folder runs ({pid_file} is not there); is POINTSMAN_HOME the gateway's?"
    try:
        os.kill(_pid(pid_file), signal.SIGHUP)
    except FileNotFoundError:
        raise GatewayError(absent) from None
    except ProcessLookupError:
        raise GatewayError(f"{pid_file} names a process that has ended; start the gateway anew") from None
    except PermissionError:
        raise GatewayError("the gateway belongs to another user: reload as that user") from None


def _pid(pid_file: Path) -> int:
    text = pid_file.read_text(encoding="utf-8").strip()
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) <= 1:  # 0 and below would signal whole groups
        raise GatewayError(f"{pid_file}: expected a process id, got {text[:40]!r}")
    return int(text)


def _await(client: GatewayClient, wanted: str, agreeing: int, clock: Clock, patience: float) -> dict[str, Any]:
    deadline = clock.now() + patience
    agreed = 0
    while True:
        reply = client.readiness()
        agreed = agreed + 1 if reply and reply.content.get("configuration") == wanted else 0
        if reply and agreed >= agreeing:
            return reply.content
        if clock.now() >= deadline:
            raise GatewayError(
                f"the gateway did not take the new configuration within {patience:g} s; its own log says why, "
                "and it serves on with the old one"
            )
        if not agreed:
            clock.sleep(PAUSE)
