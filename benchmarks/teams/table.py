"""From what every pattern got on every task to the figures: means, intervals, differences at matched budgets."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats
from teams.matched import Matched
from teams.world import Ran

from pointsman.statistics.episodes import paired_bootstrap

Row = tuple[int, str]
"""World and task."""


@dataclass
class Cell:
    """One pattern on one family: a run per (world, task), and what singles get for as much (budget, baseline → row)."""

    ran: dict[Row, Ran] = field(default_factory=dict)
    matched: dict[tuple[str, str], dict[Row, Matched]] = field(default_factory=dict)

    @property
    def reward(self) -> float:
        return round(statistics.mean(ran.reward for ran in self.ran.values()), 4)

    def cost_of_single(self, single: Cell, *, fewest_calls: int) -> float | None:
        """A single's cost ÷ this pattern's, on the requests for which it made so many calls; None where on none."""
        rows = [row for row, ran in self.ran.items() if ran.calls >= fewest_calls]
        if not rows:
            return None
        return round(sum(single.ran[row].cost for row in rows) / sum(self.ran[row].cost for row in rows), 4)

    def figures(self, rng: np.random.Generator) -> dict[str, Any]:
        rewards = [ran.reward for ran in self.ran.values()]
        interval = paired_bootstrap(rewards, np.zeros(len(rewards)), rng)
        found: dict[str, Any] = {
            "reward": round(statistics.mean(rewards), 4),
            "interval": [round(interval.low, 4), round(interval.high, 4)],
            "tokens": round(statistics.mean(ran.tokens for ran in self.ran.values()), 1),
            "cost": round(statistics.mean(ran.cost for ran in self.ran.values()), 9),
            "decisions": round(statistics.mean(ran.decisions for ran in self.ran.values()), 2),
            "calls": round(statistics.mean(ran.calls for ran in self.ran.values()), 2),
            "fewest_calls": min(ran.calls for ran in self.ran.values()),
        }
        for budget in ("tokens", "cost"):
            if baselines := {name: rows for (which, name), rows in self.matched.items() if which == budget}:
                found[f"equal_{budget}"] = self._against(baselines, rng)
        return found

    def _against(self, baselines: dict[str, dict[Row, Matched]], rng: np.random.Generator) -> dict[str, Any]:
        """Against the better of the baselines: the one whose mean reward is higher."""
        name = max(baselines, key=lambda one: statistics.mean(row.reward for row in baselines[one].values()))
        rows = baselines[name]
        keys = list(self.ran)
        difference = np.array([self.ran[key].reward - rows[key].reward for key in keys])
        bootstrap = paired_bootstrap(difference, np.zeros(len(keys)), rng)
        worlds = sorted({world for world, _ in keys})
        means = [float(np.mean([d for d, (at, _) in zip(difference, keys, strict=True) if at == w])) for w in worlds]
        return {
            "single": name,
            "reward": round(statistics.mean(row.reward for row in rows.values()), 4),
            "difference": round(float(difference.mean()), 4),
            "interval": [round(bootstrap.low, 4), round(bootstrap.high, 4)],
            "interval_over_worlds": over_worlds(means),
            "by_world": dict(zip(map(str, worlds), (round(mean, 4) for mean in means), strict=True)),
            "attempts": round(statistics.mean(row.attempts for row in rows.values()), 2),
            "token_ratio": round(self._total("tokens") / sum(row.tokens for row in rows.values()), 4),
            "cost_ratio": round(self._total("cost") / sum(row.cost for row in rows.values()), 4),
        }

    def _total(self, what: str) -> float:
        return float(sum(getattr(ran, what) for ran in self.ran.values()))


def over_worlds(values: Sequence[float]) -> list[float | None]:
    """The 95% t-interval of the mean; worlds are the unit."""
    if len(values) < 2:
        return [None, None]
    half = float(stats.t.ppf(0.975, len(values) - 1)) * statistics.stdev(values) / math.sqrt(len(values))
    return [round(statistics.mean(values) - half, 4), round(statistics.mean(values) + half, 4)]
