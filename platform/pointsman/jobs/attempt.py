"""One attempt at a job, from its runner's first line to how it ended. The one broad `except` of jobs is here."""

from __future__ import annotations

import traceback
from typing import Any

from pointsman.database.clean import clean_text
from pointsman.errors import (
    ArtifactError,
    BudgetSpent,
    ChunkFailed,
    JobCancelled,
    JobSkipped,
    JobStopped,
    LeaseLost,
    UserError,
)
from pointsman.jobs.context import JobContext
from pointsman.jobs.ending import End
from pointsman.jobs.fanout import lend_a_hand
from pointsman.jobs.kinds import parse_params
from pointsman.jobs.runners import JobRunner, runner_of
from pointsman.jobs.values import storable

REASON_CHARS = 2_000
_PLAIN = (UserError, BudgetSpent, ChunkFailed, ArtifactError)


def attempt(context: JobContext) -> End:
    """Runs the job; never raises but for what is no Exception. The end is not yet written."""
    held = context.held
    try:
        runner = runner_of(held.kind)
        params = parse_params(held.kind, held.params)
        share(context, runner, params)
        result = runner.run(context, params)
        return End(held, "done", None, None if result is None else storable(dict(result), "result"))
    except LeaseLost as error:
        return End(held, "failed", str(error))  # written under a fence that is no longer valid: changes nothing
    except JobCancelled:
        return End(held, "cancelled", "cancelled")
    except JobSkipped as skipped:
        return End(held, "skipped", _short(str(skipped)))
    except _PLAIN as error:
        context.log(str(error), "error")
        return End(held, "failed", _short(str(error)))
    except Exception as error:  # noqa: BLE001 - the edge of a job: whatever a runner raises becomes its state
        context.log(traceback.format_exc(), "error")
        return End(held, "failed", _short(f"{type(error).__name__}: {error}"))


def help_out(context: JobContext) -> int:
    """A helper's whole work: parts of a job that another worker runs; how many it did.

    What is wrong with a part stands on the part, and fails the job in its own worker.
    """
    held = context.held
    share(context, runner_of(held.kind), parse_params(held.kind, held.params))
    try:
        return lend_a_hand(context)
    except JobStopped as stopped:
        context.log(f"a helper ends: {stopped}", "warning")
        return 0


def share(context: JobContext, runner: JobRunner, params: Any) -> None:
    """Tells the context how its kind works on one part, if it does."""
    if (part := runner.part) is not None:
        context.part = lambda item: part(context, params, item)


def _short(text: str) -> str:
    cleaned = clean_text(text)
    return cleaned if len(cleaned) <= REASON_CHARS else cleaned[:REASON_CHARS] + "…"
