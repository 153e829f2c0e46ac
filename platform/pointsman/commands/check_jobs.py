"""Doctor's check of background jobs: what waits, whether anybody runs it, what died."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pointsman.commands.findings import Finding

if TYPE_CHECKING:
    from pointsman.config import Config, Settings
    from pointsman.jobs.health import Health
    from pointsman.words import JobState

SHOWN: tuple[JobState, ...] = ("queued", "running", "cancelling", "dead")


def jobs(settings: Settings, config: Config) -> list[Finding]:
    """Nothing where the database does not answer, which another check says."""
    from pointsman.errors import UserError
    from pointsman.jobs.broker import MISSING, configured_broker, installed
    from pointsman.jobs.health import workers_of

    if not installed():
        return [Finding("jobs", "warn", "no worker can run here", MISSING)]
    try:
        configured_broker(settings, config)
    except UserError as error:
        return [Finding("jobs", "fail", str(error), "set it where the worker runs")]
    counts = _counts(settings, config)
    return [] if counts is None else [_finding(counts, workers_of(settings.home))]


def _finding(counts: dict[JobState, int], workers: list[Health]) -> Finding:
    told = ", ".join(f"{counts[state]} {state}" for state in SHOWN if counts.get(state)) or "none waits or runs"
    troubles = [f"{part.name}: {part.trouble}" for worker in workers for part in worker.parts if part.trouble]
    if any(not worker.well for worker in workers):
        return Finding("jobs", "fail", f"{told}; a worker is not well", "`pointsman worker --check`; see its log")
    if troubles:
        return Finding("jobs", "warn", f"{told}; {troubles[0]}", "`pointsman worker --check`")
    if counts.get("queued") and not workers:
        return Finding("jobs", "warn", f"{told}; no worker of this data folder runs", "`pointsman worker` starts one")
    if counts.get("dead"):
        return Finding("jobs", "warn", told, "`pointsman jobs list --state dead` says why")
    return Finding("jobs", "ok", told)


def _counts(settings: Settings, config: Config) -> dict[JobState, int] | None:
    from sqlalchemy.exc import SQLAlchemyError

    from pointsman.database.engine import make_engine
    from pointsman.database.open import configured_url
    from pointsman.errors import PointsmanError
    from pointsman.jobs.store import Jobs

    try:
        engine = make_engine(configured_url(settings, config), application="pointsman-doctor")
    except (PointsmanError, SQLAlchemyError):
        return None
    try:
        return Jobs(engine).counts()
    except SQLAlchemyError:
        return None
    finally:
        engine.dispose()
