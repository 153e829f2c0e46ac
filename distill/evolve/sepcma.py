"""Separable CMA-ES, batched: the whole population is drawn and ranked as one array. It maximises.

Ros and Hansen, 2008, with the constants of Hansen's tutorial (arXiv 1604.00772) for everything that is not
diagonal. Both learning rates of the covariance are scaled by (n + 2) / 3 (Ros and Hansen, eq. 4): the
library `cmaes` 0.13.1 scales only the rank-μ one. `benchmarks/evolution.py` measures the difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from distill.arrays import Floats


@dataclass(eq=False)
class SepCma:
    """Search state over n numbers. `population` by default 4 + 3 ln n, rounded up (34 at n = 19,456)."""

    mean: Floats
    sigma: float
    rng: np.random.Generator
    population: int = 0
    variances: Floats = field(init=False)
    path: Floats = field(init=False)
    step_path: Floats = field(init=False)
    generation: int = 0

    def __post_init__(self) -> None:
        n = len(self.mean)
        self.mean = np.asarray(self.mean, np.float64).copy()
        self.population = self.population or math.ceil(4 + 3 * math.log(n))
        self.variances, self.path, self.step_path = np.ones(n), np.zeros(n), np.zeros(n)
        parents = self.population // 2
        raw = np.log(parents + 0.5) - np.log(np.arange(1, parents + 1))
        self.weights = raw / raw.sum()
        mass = 1 / float((self.weights**2).sum())
        self.mass = mass  # μ_eff
        self.step_rate = (mass + 2) / (n + mass + 5)
        self.damping = 1 + 2 * max(0.0, math.sqrt((mass - 1) / (n + 1)) - 1) + self.step_rate
        self.path_rate = (4 + mass / n) / (n + 4 + 2 * mass / n)
        faster = (n + 2) / 3
        self.rank_one = min(1.0, faster * 2 / ((n + 1.3) ** 2 + mass))
        rank_mu = faster * 2 * (mass - 2 + 1 / mass) / ((n + 2) ** 2 + mass)
        self.rank_mu = min(1 - self.rank_one, rank_mu)
        self.expected = math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n))  # E|N(0, I)|

    def ask(self) -> Floats:
        """The next candidates, [population, n]."""
        noise = self.rng.standard_normal((self.population, len(self.mean)))
        return self.mean + self.sigma * noise * np.sqrt(self.variances)

    def tell(self, candidates: Floats, fitness: Floats) -> None:
        """Moves toward the fittest. Every fitness must be finite (`guards.ranked` sees to it)."""
        self.generation += 1
        order = np.argsort(-fitness, kind="stable")[: len(self.weights)]
        steps = (candidates[order] - self.mean) / self.sigma
        step = self.weights @ steps
        self.mean = self.mean + self.sigma * step
        moving = self._step_size(step)
        self._variances(steps, step, moving)

    def _step_size(self, step: Floats) -> bool:
        """Updates sigma; whether the path is short enough to count (h_σ)."""
        rate = self.step_rate
        self.step_path = (1 - rate) * self.step_path + math.sqrt(rate * (2 - rate) * self.mass) * (
            step / np.sqrt(self.variances)
        )
        length = float(np.linalg.norm(self.step_path))
        self.sigma *= math.exp(min(1.0, rate / self.damping * (length / self.expected - 1)))
        settled = math.sqrt(1 - (1 - rate) ** (2 * self.generation))
        return length / settled < (1.4 + 2 / (len(self.mean) + 1)) * self.expected

    def _variances(self, steps: Floats, step: Floats, moving: bool) -> None:
        rate = self.path_rate
        self.path = (1 - rate) * self.path + moving * math.sqrt(rate * (2 - rate) * self.mass) * step
        missing = (not moving) * rate * (2 - rate)
        kept = 1 - self.rank_one - self.rank_mu + self.rank_one * missing
        spread = self.weights @ (steps * steps)
        self.variances = kept * self.variances + self.rank_one * self.path**2 + self.rank_mu * spread

    def finite(self) -> bool:
        """Whether the state can still be drawn from."""
        usable = np.isfinite(self.mean).all() and np.isfinite(self.variances).all() and (self.variances > 0).all()
        return bool(usable) and 0 < self.sigma < 1e12

    def arrays(self) -> dict[str, Floats]:
        return {"mean": self.mean, "variances": self.variances, "path": self.path, "step_path": self.step_path}

    def numbers(self) -> dict[str, Any]:
        """The rest of the state, as JSON: with `arrays` it continues to the same numbers."""
        return {
            "sigma": self.sigma,
            "population": self.population,
            "generation": self.generation,
            "rng": self.rng.bit_generator.state,
        }

    @classmethod
    def restored(cls, arrays: dict[str, Floats], numbers: dict[str, Any]) -> SepCma:
        rng = np.random.default_rng()
        rng.bit_generator.state = numbers["rng"]
        state = cls(arrays["mean"], numbers["sigma"], rng, numbers["population"])
        state.variances, state.path, state.step_path = (
            np.asarray(arrays[name], np.float64).copy() for name in ("variances", "path", "step_path")
        )
        state.generation = numbers["generation"]
        return state
