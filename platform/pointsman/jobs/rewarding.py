"""The job kind that keeps rewards up with the log."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from pointsman.jobs.kind import Estimate, Facts, JobKind
from pointsman.jobs.params import option


@dataclass(frozen=True)
class Rewards:
    """Computes the rewards of what has come in, has closed, or got a word or a judge's score."""

    sweep: bool = option(False, "look through everything that is kept, for what came late")
    small: bool = option(False, "run inside the worker: only where little is to be computed")


def _estimate(params: Rewards, facts: Facts) -> Estimate:
    return Estimate(None, Decimal(0), "no calls are made; about a second for 2,000 decisions that are new")


REWARDING: tuple[JobKind, ...] = (
    JobKind(
        "rewards",
        Rewards,
        "default",
        ("compute",),
        "compute the rewards of what came in since; started by itself",
        _estimate,
        small=lambda params: params.small,
    ),
)
