"""How good a conductor is: greedy plans for a set of items, carried out, and what came of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from distill.arrays import Floats
from distill.conductor.generating import Said, generate
from distill.conductor.rollouts import Item, Rolled, Scene


@dataclass(frozen=True, eq=False)
class Judged:
    """Per item, in order. `outcome` and `total` are rewards, `cost` in USD."""

    rolled: tuple[Rolled, ...]

    @property
    def outcomes(self) -> Floats:
        """NaN, where nobody could say, counts as not solved."""
        return np.array([one.earned.outcome if one.earned.known else 0.0 for one in self.rolled])

    @property
    def totals(self) -> Floats:
        return np.array([one.earned.total if one.earned.known else 0.0 for one in self.rolled])

    @property
    def parse_rate(self) -> float:
        return sum(one.parsed for one in self.rolled) / max(1, len(self.rolled))

    @property
    def cost_per_solved(self) -> float:
        solved = float(self.outcomes.sum())
        return sum(one.cost for one in self.rolled) / solved if solved else math.inf

    def figures(self) -> dict[str, float]:
        return {
            "reward": round(float(self.totals.mean()), 4),
            "right": round(float(self.outcomes.mean()), 4),
            "parse_rate": round(self.parse_rate, 4),
            "cost_per_solved": self.cost_per_solved,
            "steps": round(sum(one.steps for one in self.rolled) / max(1, len(self.rolled)), 3),
        }


def judge(model: Any, tokenizer: Any, scene: Scene, items: Sequence[Item], *, temperature: float = 0.0) -> Judged:
    """Greedy, as served, unless a temperature is given."""
    said = generate(model, tokenizer, [scene.asked(item).messages for item in items], temperature=temperature)
    return rolled(scene, items, said)


def rolled(scene: Scene, items: Sequence[Item], said: Sequence[Said]) -> Judged:
    pairs = [(item, one.text, one.usage) for item, one in zip(items, said, strict=True)]
    return Judged(tuple(scene.roll(pairs)))
