"""Routers compared on rows that no training saw: value, gap closed, paired intervals, and what speaks against one.

A router is accepted only where its interval against the best single worker and, unless it is one itself, against the
best cheap router lies above 0, and where it does not give nearly everything to one worker. The best cheap router is
chosen on validation rows, so that choosing costs no luck here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from distill.arrays import Floats
from distill.evaluate.values import entropy, gap_closed, oracle, picks, realised, shares, two_sided
from pointsman.statistics.arrays import Interval
from pointsman.statistics.episodes import Episodes, paired_bootstrap

MOST_SHARE = 0.98
"""A router that gives one worker more than this routes nothing."""


@dataclass(frozen=True, eq=False)
class Scored:
    """A router's scores [m, k] of the judged rows; `cheap` is one of the cheap routers that others must beat."""

    name: str
    scores: Floats
    cheap: bool = False


@dataclass(frozen=True, eq=False)
class Exam:
    """Rewards [m, k] of the judged rows, their episodes and tasks, and the arms' names. `single` is the arm that was
    best on training rows, `cheap` names the cheap router that was best on validation rows."""

    rewards: Floats
    episodes: Episodes
    tasks: Sequence[str | None]
    workers: Sequence[str]
    single: int
    cheap: str | None
    seed: int = 1

    def earned(self, scored: Scored) -> Floats:
        return realised(self.rewards, scored.scores)

    def rng(self) -> np.random.Generator:
        return np.random.default_rng([self.seed, 11])

    def difference(self, new: Floats, old: Floats) -> Interval:
        return paired_bootstrap(new, old, self.rng(), episodes=self.episodes)

    def mean(self, earned: Floats) -> Interval:
        return self.difference(earned, np.zeros(len(earned)))


def compare(exam: Exam, routers: Sequence[Scored]) -> list[dict[str, Any]]:
    """One line for each router, in their order, with the reasons against it under `refused`."""
    cheap = next((exam.earned(one) for one in routers if one.name == exam.cheap), None)
    return [_line(exam, one, cheap) for one in routers]


def frame(exam: Exam) -> dict[str, Any]:
    """What every comparison stands between: each worker alone, a worker at random, the oracle."""
    best = exam.mean(oracle(exam.rewards))
    alone = {name: round(float(exam.rewards[:, k].mean()), 4) for k, name in enumerate(exam.workers)}
    return {
        "best_single": exam.workers[exam.single],
        "best_single_value": alone[exam.workers[exam.single]],
        "random": round(float(exam.rewards.mean()), 4),
        "oracle": round(best.estimate, 4),
        "oracle_interval": two_sided(best),
        "workers": alone,
    }


def _line(exam: Exam, one: Scored, cheap: Floats | None) -> dict[str, Any]:
    earned, single = exam.earned(one), exam.rewards[:, exam.single]
    gap = gap_closed(earned, single, oracle(exam.rewards), exam.rng(), draws=1000)
    chosen = shares(picks(one.scores), len(exam.workers))
    against = exam.difference(earned, single)
    line: dict[str, Any] = {
        "router": one.name,
        "value": round(float(exam.mean(earned).estimate), 4),
        "value_interval": two_sided(exam.mean(earned)),
        "gap_closed": round(gap.closed, 4),
        "gap_interval": [round(gap.low, 4), round(gap.high, 4)],
        "vs_best_single": round(against.estimate, 4),
        "vs_best_single_interval": two_sided(against),
        "entropy": round(entropy(chosen), 4),
        "shares": {name: round(float(share), 4) for name, share in zip(exam.workers, chosen, strict=True)},
    }
    beside = None
    if cheap is not None and one.name != exam.cheap:
        beside = exam.difference(earned, cheap)
        line |= {"vs_cheap": round(beside.estimate, 4), "vs_cheap_interval": two_sided(beside)}
    return line | {"refused": _reasons(against, None if one.cheap else beside, chosen)}


def _reasons(against: Interval, beside: Interval | None, chosen: Floats) -> list[str]:
    reasons = []
    if not against.low > 0:
        reasons.append("it is not shown to be better than the best single worker")
    if beside is not None and not beside.low > 0:
        reasons.append("it is not shown to be better than the best cheap router")
    if chosen.max() > MOST_SHARE:
        reasons.append("it gives nearly everything to one worker")
    return reasons


def per_task(exam: Exam, routers: Sequence[Scored]) -> list[dict[str, Any]]:
    """A line for each task: requests, the best single worker there, every router, the oracle. Empty without tasks."""
    known = np.array([task or "" for task in exam.tasks])
    best = oracle(exam.rewards)
    lines: list[dict[str, Any]] = []
    for task in sorted(set(known.tolist()) - {""}):
        rows = known == task
        values: Mapping[str, float] = {one.name: float(exam.earned(one)[rows].mean()) for one in routers}
        lines.append(
            {
                "task": task, "requests": int(rows.sum()), "best_single": float(exam.rewards[rows, exam.single].mean()),
                **values, "oracle": float(best[rows].mean()),
            }
        )  # fmt: skip
    return lines
