"""`pointsman optimize`: searches for cards and instructions by which the prompted router chooses better."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pointsman.commands.asking import DEFAULT_PROJECT, AsJob, Budget, Concurrency, Project, needed
from pointsman.commands.options import DATA, ConfigFile, Json, opened
from pointsman.commands.output import notes, print_json, say

if TYPE_CHECKING:
    from harness.optimise.run import Wish
    from pointsman.config import Config, Settings

HELP = """Search for cards by which the router chooses better, and certify what is found.

Learns from full-information rows: tasks or logged requests that every worker
of the configuration has answered (`pointsman probe`, `pointsman audit`,
`pointsman import`). They are cut by time: the search sees the earlier part,
the latest part is opened once, after it, to certify the winner against the
cards of the configuration.

Without --reflect no language model but the router's is asked anything: cards
are written from the words of requests that a worker won and lost. With
--reflect WORKER that worker rewrites cards and instructions.

With --promote-as-candidate a certified winner is written to the log as a
router version of state `candidate`. Nothing serves by itself.

Examples:
  pointsman sandbox tasks --n 600 > tasks.jsonl
  pointsman probe --tasks tasks.jsonl
  pointsman optimize
  pointsman optimize --tasks tasks.jsonl --budget-calls 600
  pointsman optimize --origin replay --trade-off 20 --promote-as-candidate
  pointsman optimize --reflect large --budget 3 --minutes 30
  pointsman optimize --job

Exit codes: 0 the search ended, whatever it found; 1 a service failed (the
same command goes on where it stopped); 2 a mistake in what was given.
"""
ORIGINS = ("probe", "audit", "replay", "traffic")


def optimize_command(
    tasks: Annotated[
        Path | None,
        typer.Option("--tasks", metavar="FILE", help="Only rows of this file's probe run.", show_default=False),
    ] = None,
    from_log: Annotated[
        bool, typer.Option("--from-log", help="Rows of the log; the default where no tasks are named.")
    ] = False,
    origin: Annotated[
        list[str] | None,
        typer.Option("--origin", help="probe, audit, replay or traffic; several times. Default: probe and audit."),
    ] = None,
    budget_calls: Annotated[int, typer.Option("--budget-calls", min=1, help="Router calls of the search.")] = 1_000,
    budget: Budget = None,
    minutes: Annotated[
        float | None, typer.Option("--minutes", help="The most time that it may take.", show_default=False)
    ] = None,
    reward: Annotated[
        str | None, typer.Option("--reward", metavar="NAME", help="A reward of the configuration.", show_default=False)
    ] = None,
    trade_off: Annotated[
        float, typer.Option("--trade-off", min=0.0, help="λ: how much reward a dollar is worth. 0: cost is ignored.")
    ] = 0.0,
    reflect: Annotated[
        str | None, typer.Option("--reflect", metavar="WORKER", help="It rewrites texts.", show_default=False)
    ] = None,
    mipro: Annotated[bool, typer.Option("--mipro", help="Instructions by MIPROv2, too; needs --reflect.")] = False,
    brief: Annotated[bool, typer.Option("--brief", help="Try shorter hand-written instructions, too.")] = False,
    demonstrations: Annotated[
        int, typer.Option("--demonstrations", min=0, max=8, help="Try this many logged requests as examples.")
    ] = 0,
    start_cards: Annotated[
        Path | None,
        typer.Option("--start-cards", metavar="FILE", help="JSON, card by worker, to start from.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Another one takes other steps.")] = 1,
    concurrency: Concurrency = 8,
    promote_as_candidate: Annotated[
        bool, typer.Option("--promote-as-candidate", help="Write a certified winner as a candidate.")
    ] = False,
    project: Project = DEFAULT_PROJECT,
    job: AsJob = False,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    from pointsman.commands.asking import start_job
    from pointsman.commands.jobs_start import read_budget
    from pointsman.errors import UserError
    from pointsman.jobs.kinds import parse_params

    settings, read = opened(config)
    known, limit = needed(settings, read), read_budget(budget)
    if tasks is not None and from_log:
        raise UserError("--tasks and --from-log: name one of them")
    params: dict[str, Any] = {
        "origins": list(origin or (["probe"] if tasks else ["probe", "audit"])),
        "run": None if tasks is None else tasks.stem,
        "calls": budget_calls,
        "minutes": minutes,
        "reward": reward,
        "trade_off": trade_off,
        "reflect": reflect,
        "mipro": mipro,
        "brief": brief,
        "demonstrations": demonstrations,
        "seed": seed,
        "concurrency": concurrency,
        "promote_as_candidate": promote_as_candidate,
    }
    if job:
        if start_cards is not None:
            raise UserError("--start-cards and --job: a job starts from the cards of the configuration")
        start_job(settings, known, "optimize", params, project, limit)
        return
    from harness.optimise.job import wish_of

    wish = wish_of(parse_params("optimize", params), limit, start_cards)
    _show(_run(settings, known, wish, project), json=json)


def register(app: typer.Typer) -> None:
    """Adds the command `optimize`."""
    app.command("optimize", help=HELP, rich_help_panel=DATA)(optimize_command)


def _run(settings: Settings, config: Config, wish: Wish, project: str) -> dict[str, Any]:
    from harness.optimise.job import state_folder
    from harness.optimise.run import run
    from pointsman.commands.database import log_database
    from pointsman.identity import ensure_project

    with log_database(settings, config) as engine:
        with engine.begin() as connection:
            project_id = ensure_project(connection, project)
        folder = state_folder(settings)
        done = run(config, settings, engine, project_id, wish, folder, lambda stage: say(notes(), f"{stage} …", "dim"))
    return done.as_dict()


def _show(result: dict[str, Any], *, json: bool) -> None:
    from harness.optimise.telling import lines
    from pointsman.commands.output import out

    if json:
        print_json(result)
        return
    for line in lines(result):
        say(out(), line)
