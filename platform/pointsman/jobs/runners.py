"""From a job's kind to the code that runs it: the entry-point group `pointsman.jobs`, read in workers alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from pointsman.errors import BrokenInvariant, UserError
from pointsman.jobs.context import JobContext
from pointsman.jobs.kinds import JobKind, kind_of

GROUP = "pointsman.jobs"

Run = Callable[[JobContext, Any], Mapping[str, Any] | None]
Part = Callable[[JobContext, Any, Any], Any]


@dataclass(frozen=True, slots=True)
class JobRunner:
    """What an entry point names: `run(context, params)` gives the job's result.

    `part(context, params, item)` works on one item of `context.chunks.fan_out`, and is what lets other
    workers help; its value must be JSON.
    """

    run: Run
    part: Part | None = None


@cache
def runner_of(kind: str) -> JobRunner:
    """The runner of a kind. Raises UserError that says which `pip install` mends it where it cannot be loaded."""
    found = list(entry_points(group=GROUP, name=kind))
    if not found:
        raise UserError(f"no runner for {kind!r} jobs is installed here{_remedy(kind_of(kind))}")
    try:
        loaded = found[0].load()
    except ModuleNotFoundError as error:
        raise UserError(f"{kind!r} jobs need the module {error.name!r}{_remedy(kind_of(kind))}") from error
    if isinstance(loaded, JobRunner):
        return loaded
    if not callable(loaded):
        raise BrokenInvariant(f"entry point {found[0].value} is no runner of jobs")
    return JobRunner(loaded)


def _remedy(kind: JobKind) -> str:
    package = f"'pointsman[{kind.extra}]'" if kind.extra else "pointsman"
    return f"; pip install {package} where the worker runs"
