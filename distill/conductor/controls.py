"""The same reward and as many rollouts, by other methods: what GRPO has to beat.

continued         SFT goes on, with examples of as many new rollouts of the prompted conductor and of chance
expert_iteration  SFT on the model's own plans that ended right, in rounds (STaR, arXiv 2203.14465)
evolved           sep-CMA-ES over singular values, a candidate's fitness what its greedy plans earn
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from distill.arrays import Floats
from distill.conductor.checking import load_causal
from distill.conductor.example import Example
from distill.conductor.generating import generate
from distill.conductor.judging import judge, rolled
from distill.conductor.rollouts import Item, Scene
from distill.conductor.sampling import examples as sampled
from distill.conductor.sampling import kept
from distill.conductor.sft import ConductorSft, Load, SftRun, Watching, fit
from distill.conductor.tuning import save, tuned
from distill.evolve.replay import Fitness
from distill.evolve.sepcma import SepCma
from harness.engine.request import seed_of


@dataclass(frozen=True)
class Budget:
    """`rollouts` in all, on `items` that are asked again and again."""

    items: Sequence[Item]
    rollouts: int
    seed: int

    def drawn(self, n: int, purpose: str) -> list[Item]:
        """`n` items, each in an order of workers of its own."""
        rng = np.random.default_rng(seed_of(self.seed, purpose))
        chosen = rng.integers(0, len(self.items), n)
        return [replace(self.items[place], seed=int(rng.integers(2**48))) for place in chosen]


def continued(
    start: Path,
    old: Sequence[Example],
    scene: Scene,
    validation: Sequence[Item],
    budget: Budget,
    config: ConductorSft,
    folder: Path,
    watching: Watching | None = None,
) -> SftRun:
    """SFT that goes on from `start` on the old examples and those of `budget.rollouts` new ones."""
    asked = budget.drawn(max(1, budget.rollouts // 2), "continued")
    new, _ = sampled(scene, asked, assignments=1, seed=budget.seed)
    return fit(_loader(start), [*old, *new], scene, validation, config, folder, watching)


def expert_iteration(
    start: Path,
    scene: Scene,
    validation: Sequence[Item],
    budget: Budget,
    config: ConductorSft,
    folder: Path,
    *,
    rounds: int = 2,
    watching: Watching | None = None,
) -> SftRun:
    """`rounds` of: draw plans, keep those that ended right, fine-tune on them. The best round by validation."""
    runs: list[SftRun] = []
    for number in range(rounds):
        model, tokenizer, _ = load_causal(str(start))
        asked = budget.drawn(max(1, budget.rollouts // rounds), f"round/{number}")
        import torch

        torch.manual_seed(seed_of(budget.seed, f"plans/{number}") % 2**31)
        said = generate(model, tokenizer, [scene.asked(item).messages for item in asked], temperature=1.0)
        seen = rolled(scene, asked, said)
        tried = [(item, one.text, "own", found) for item, one, found in zip(asked, said, seen.rolled, strict=True)]
        found = kept(scene, tried)
        if not found:
            break
        runs.append(fit(_loader(start), found, scene, validation, config, folder / f"round-{number}", watching))
        start = runs[-1].chosen.folder
    if not runs:
        return SftRun(chosen=_unchanged(start, scene, validation), tried=())
    return max(runs, key=lambda run: run.chosen.reward)


def evolved(
    start: Path,
    scene: Scene,
    validation: Sequence[Item],
    budget: Budget,
    folder: Path,
    *,
    sigma: float = 0.03,
    tasks: int = 8,
) -> Path:
    """sep-CMA-ES from `start`; the better of start and the search's mean by validation is saved in `folder`."""
    import torch

    model, tokenizer, _ = load_causal(str(start))
    problem = PlanSearch(tuned(model, "svf"), tokenizer, scene, budget, tasks)
    search = SepCma(np.zeros(problem.size), sigma, np.random.default_rng(budget.seed))
    for _ in range(max(1, budget.rollouts // (search.population * tasks))):
        candidates = search.ask()
        search.tell(candidates, problem.fitness(candidates, search.generation).shaped)
    values = [(problem.value(point, validation), point) for point in (np.zeros(problem.size), search.mean)]
    problem.put(max(values, key=lambda pair: pair[0])[1])
    torch.manual_seed(0)
    return save(problem.model, tokenizer, folder, {"form": scene.form, "method": "sep-cma-es"})


@dataclass(eq=False)
class PlanSearch:
    """Candidates are offsets of singular values; all of a generation are asked the same `tasks` items."""

    model: Any
    tokenizer: Any
    scene: Scene
    budget: Budget
    tasks: int

    @property
    def size(self) -> int:
        from distill.svf import count_offsets

        return count_offsets(self.model)

    def fitness(self, candidates: Floats, generation: int) -> Fitness:
        asked = self.budget.drawn(self.tasks, f"generation/{generation}")
        values = np.array([self.value(point, asked) for point in candidates])
        return Fitness(values, values)

    def value(self, point: Floats, asked: Sequence[Item]) -> float:
        self.put(point)
        return float(judge(self.model, self.tokenizer, self.scene, asked).totals.mean())

    def put(self, point: Floats) -> None:
        import torch

        from distill.svf import set_offsets

        set_offsets(self.model, torch.as_tensor(point, dtype=torch.float32))


def _loader(folder: Path) -> Load:
    return lambda: load_causal(str(folder))[:2]


def _unchanged(start: Path, scene: Scene, validation: Sequence[Item]) -> Any:
    """Where nothing was learnt the start is the result."""
    from distill.conductor.plateau import Point
    from distill.conductor.sft import Fitted

    model, tokenizer, _ = load_causal(str(start))
    seen = judge(model, tokenizer, scene, validation)
    point = Point(0, float(seen.totals.mean()), float(seen.outcomes.mean()), seen.parse_rate)
    return Fitted(start, 0.0, (point,), True, 0)
