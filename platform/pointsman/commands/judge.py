"""`pointsman judge`: how far the configured judge's scores can be believed, by rows whose truth a verifier knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pointsman.commands.asking import DEFAULT_PROJECT, Budget, Concurrency, Project, bar, needed
from pointsman.commands.options import DATA, ConfigFile, Json, opened
from pointsman.commands.output import cell, out, print_json, say, table
from pointsman.errors import UserError

if TYPE_CHECKING:
    from decimal import Decimal

    from sqlalchemy import Engine

    from pointsman.config import Config, Settings
    from pointsman.judge.calibration import Calibrated
    from pointsman.judge.judging import JudgeSpec

HELP = """Calibrate the judge of \\[judge] against what verifiers know.

The judge scores the answers of rows that have a verifier's mark and no score
of this judge yet. Then each worker's mean is shown twice: in judge units, as
the judge sees it, and corrected by the verified rows (PPI++), with a 95%
interval. Scores in judge units are never shown as the truth elsewhere.

Examples:
  pointsman judge --budget 0.50            probes: their verifiers know
  pointsman judge --origin audit
  pointsman judge --no-ask                 what was judged already
"""


def judge_command(
    origin: Annotated[str, typer.Option("--origin", help="probe or audit.")] = "probe",
    ask: Annotated[bool, typer.Option("--ask/--no-ask", help="Have rows judged that were not.")] = True,
    budget: Budget = None,
    concurrency: Concurrency = 4,
    project: Project = DEFAULT_PROJECT,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    from pointsman.commands.database import log_database
    from pointsman.commands.jobs_start import read_budget
    from pointsman.identity import ensure_project

    if origin not in ("probe", "audit"):
        raise UserError(f"--origin: expected probe or audit, got {origin!r}")
    settings, read = opened(config)
    known, limit = needed(settings, read), read_budget(budget)
    spec = _spec(known)
    with log_database(settings, known) as engine:
        with engine.begin() as connection:
            project_id = ensure_project(connection, project)
        if ask:
            _judge(settings, known, engine, spec, project_id, origin, limit, concurrency)
        made = _calibrated(engine, project_id, spec, origin)
    if json:
        print_json([_figures(one) for one in made])
    else:
        _show(made, spec.worker.name, origin)


def register(app: typer.Typer) -> None:
    """Adds the command `judge`."""
    app.command("judge", help=HELP, rich_help_panel=DATA)(judge_command)


def _spec(config: Config) -> JudgeSpec:
    from pointsman.judge.judging import JudgeSpec
    from pointsman.pool import Pool

    spec = JudgeSpec.of(config, Pool.of(config))
    if spec is None:
        raise UserError("no judge is configured: [judge] worker names the worker that judges")
    return spec


def _judge(
    settings: Settings, config: Config, engine: Engine, spec: JudgeSpec, project: str, origin: Any,
    budget: Decimal | None, concurrency: int,
) -> None:  # fmt: skip
    import asyncio

    from pointsman.pool import Pool
    from pointsman.probing.judging import judge_rows
    from pointsman.upstream.direct import Direct

    async def run() -> None:
        with bar("judging") as watch:
            async with Direct(config, settings.secret) as asks:
                await judge_rows(
                    spec, asks=asks, engine=engine, pool=Pool.of(config), project_id=project, origins=(origin,),
                    include_verified=True, budget=budget, concurrency=concurrency, watch=watch,
                )  # fmt: skip

    asyncio.run(run())


def _calibrated(engine: Engine, project: str, spec: JudgeSpec, origin: Any) -> list[Calibrated]:
    from pointsman.judge.calibration import calibrate

    with engine.connect() as connection:
        try:
            return list(calibrate(connection, project, spec.hash, origin).values())
        except UserError:
            raise UserError(
                f"too few rows of origin {origin} have both a verifier's mark and a score of {spec.worker.name}: "
                "two or more of each worker's answers are needed"
            ) from None


def _figures(one: Calibrated) -> dict[str, Any]:
    mean = {"mean": one.mean.estimate, "low": one.mean.low, "high": one.mean.high}
    return {"worker": one.worker, "judge_units": one.judge_units, **mean, "verified": one.verified, "rows": one.rows}


def _show(made: list[Calibrated], judge: str, origin: str) -> None:
    if not made:
        say(out(), f"{judge} has scored nothing of origin {origin} yet")
        return
    shown = table(
        "worker", "in judge units", "corrected", "95% interval", "verified", right=("in judge units", "corrected")
    )
    for one in made:
        interval = f"{one.mean.low:.3f} to {one.mean.high:.3f}"
        verified = f"{one.verified:,} of {one.rows:,}"
        values = (one.worker, f"{one.judge_units:.3f}", f"{one.mean.estimate:.3f}", interval, verified)
        shown.add_row(*(cell(value) for value in values))
    out().print(shown)
