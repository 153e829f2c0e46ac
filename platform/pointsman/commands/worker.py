"""`pointsman worker`: runs jobs until Ctrl-C; with --check, says whether one runs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pointsman.commands.edge import FAILED
from pointsman.commands.options import RUNNING, ConfigFile, Json
from pointsman.commands.output import out, print_json, say
from pointsman.errors import UserError

if TYPE_CHECKING:
    from pointsman.config import Settings
    from pointsman.jobs.health import Health
    from pointsman.words import JobQueue

HELP = """Run jobs, until Ctrl-C.

There may be any number of workers, on any machines that share Postgres
and the broker. Jobs that run when a worker is stopped go on elsewhere
from their last checkpoint; so do those of one that is killed, after
\\[jobs] lease seconds. Each queue has processes of its own, so that a
training job never keeps a probe waiting.

Examples:
  pointsman worker                          every queue, as \\[jobs] says
  pointsman worker --queues train --concurrency 1
  pointsman worker --dispatch-only          wake other workers, start schedules
  pointsman worker --check                  is one of this data folder alive?

Exit codes of --check: 0 yes; 1 no.
"""


def worker_command(
    queues: Annotated[
        str, typer.Option("--queues", metavar="NAMES", help="Which queues it serves, separated by commas.")
    ] = "default,probe,train",
    concurrency: Annotated[
        int | None,
        typer.Option("--concurrency", min=1, max=64, help="Jobs at a time in each queue.", show_default=False),
    ] = None,
    dispatch_only: Annotated[
        bool, typer.Option("--dispatch-only", help="Run no jobs: only wake workers and start schedules.")
    ] = False,
    check: Annotated[bool, typer.Option("--check", help="Say whether a worker of this data folder is alive.")] = False,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    from pointsman.config import Settings, load_config
    from pointsman.logs import configure_logging

    settings = Settings.read(config=config)
    chosen = read_queues(queues)
    if check:
        show_health(settings, as_json=json)
        return
    from pointsman.jobs.worker import Work, Worker

    read = load_config(settings.config_file)
    configure_logging(form=read.log.format)
    Worker(settings, read, Work.of(read.jobs, () if dispatch_only else chosen, concurrency)).run()


def register(app: typer.Typer) -> None:
    """Adds the command `worker`."""
    app.command("worker", help=HELP, rich_help_panel=RUNNING)(worker_command)


def read_queues(names: str) -> tuple[JobQueue, ...]:
    """The queues of a list of names, each once."""
    from typing import get_args

    from pointsman.words import JobQueue

    given = {name.strip() for name in names.split(",") if name.strip()}
    known: tuple[JobQueue, ...] = get_args(JobQueue)
    if not given or (unknown := sorted(given - set(known))):
        wrong = unknown[0] if given else names
        raise UserError(f"--queues: expected some of {','.join(known)}, got {wrong!r}")
    return tuple(queue for queue in known if queue in given)


def show_health(settings: Settings, *, as_json: bool) -> None:
    """Every worker of the home; ends with 1 where there is none, or one is not well."""
    from pointsman.jobs.health import workers_of

    found = workers_of(settings.home)
    well = bool(found) and all(worker.well for worker in found)
    if as_json:
        print_json({"ok": well, "workers": [asdict(worker) | {"well": worker.well} for worker in found]})
    elif not found:
        say(out(), f"no worker of {settings.home} runs; `pointsman worker` starts one", "yellow")
    else:
        for worker in found:
            _show(worker)
    if not well:
        raise typer.Exit(FAILED)


def _show(worker: Health) -> None:
    say(out(), f"worker {worker.pid}: {'alive' if worker.well else 'not well'}", "" if worker.well else "red")
    for part in worker.parts:
        state = part.trouble or "well" if part.alive else f"silent for {part.silent_s:.0f} s"
        say(out(), f"    {part.name}: {state}", "" if state == "well" else "yellow")
