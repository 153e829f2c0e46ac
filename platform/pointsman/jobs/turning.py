"""The job kind that turns the flywheel."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from pointsman.jobs.kind import Estimate, Facts, JobKind
from pointsman.jobs.params import option


@dataclass(frozen=True)
class Flywheel:
    """Looks at the project's turn: concludes what has ended, starts what comes next."""

    force: bool = option(False, "open a turn of however little information")


def _estimate(params: Flywheel, facts: Facts) -> Estimate:
    return Estimate(0.1, Decimal(0), "a look alone; the jobs that it starts have estimates of their own")


TURNING: tuple[JobKind, ...] = (
    JobKind(
        "flywheel",
        Flywheel,
        "default",
        ("look",),
        "take the flywheel's turn further; started by itself while one is open",
        _estimate,
        small=lambda params: True,
    ),
)
