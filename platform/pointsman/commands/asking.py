"""What `pointsman probe` and `pointsman audit` share: options, a bar, and how a run is reported."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pointsman.commands.edge import FAILED
from pointsman.commands.output import notes, out, print_json, say
from pointsman.errors import UserError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from pointsman.config import Config, Settings

DEFAULT_PROJECT = "default"
Concurrency = Annotated[int, typer.Option("--concurrency", min=1, max=256, help="Calls at a time.")]
PerMinute = Annotated[
    float | None,
    typer.Option("--per-minute", metavar="N", help="Requests a minute to each worker.", show_default=False),
]
Budget = Annotated[
    str | None, typer.Option("--budget", metavar="USD", help="The most that it may spend.", show_default=False)
]
Project = Annotated[str, typer.Option("--project", help="The project that the rows belong to.")]
AsJob = Annotated[bool, typer.Option("--job", help="Start it as a job, and print the job's id.")]


class Bar:
    """A bar on stderr, on a terminal only. It watches and never ends a run: Ctrl-C does."""

    def __init__(self, bars: Progress, task: TaskID) -> None:
        self._bars = bars
        self._task = task

    def check(self) -> None:
        pass

    def progress(self, done: int, total: int | None = None) -> None:
        self._bars.update(self._task, completed=done, total=total)

    def spend(self, amount: Decimal) -> Decimal:
        return amount


@contextmanager
def bar(what: str) -> Iterator[Bar]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = notes()
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        yield Bar(bars, bars.add_task(what, total=None))


def needed(settings: Settings, config: Config | None) -> Config:
    """The configuration. Raises `UserError` where there is none: without it there are no workers to ask."""
    if config is None:
        raise UserError(f"{settings.config_file}: no such file; `pointsman init` writes one")
    return config


def rate(per_minute: float | None) -> float | None:
    if per_minute is not None and not (math.isfinite(per_minute) and per_minute > 0):
        raise UserError(f"--per-minute: expected a number above 0, got {per_minute:g}")
    return per_minute


def show_run(figures: dict[str, Any], lines: list[str], *, json: bool) -> None:
    """Prints, and exits with 1 where answers are missing."""
    if json:
        print_json(figures)
    else:
        for line in lines:
            say(out(), line)
    if figures["missing"]:
        raise typer.Exit(FAILED)


def start_job(
    settings: Settings, config: Config, kind: str, params: dict[str, Any], project: str, budget: Decimal | None
) -> None:
    """Starts it as a job in place of running it here."""
    from pointsman.commands.database import log_database
    from pointsman.identity import ensure_project
    from pointsman.jobs.store import Jobs

    with log_database(settings, config) as engine:
        with engine.begin() as connection:
            project_id = ensure_project(connection, project)
        job = Jobs(engine).start(kind, params, project_id=project_id, asked_by="command line", budget=budget)
    typer.echo(job.id)
    say(notes(), f"queued; `pointsman jobs watch {job.id}` follows it", "dim")
