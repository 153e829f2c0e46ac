"""The search over generations: ask, guard, evaluate, tell, validate; resumable to the same numbers.

The point that comes out is the one that validation liked best, the start included. It is accepted only
where a paired interval against the start, on requests that neither search nor validation saw, lies above 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from distill.arrays import Floats
from distill.evolve.guards import Stop, check_candidates, ranked
from distill.evolve.replay import Problem
from distill.evolve.sepcma import SepCma
from distill.files import load_state, save_state
from pointsman.statistics.arrays import Interval
from pointsman.statistics.episodes import paired_bootstrap


@dataclass(frozen=True)
class EvolveConfig:
    """`sigma` 0.03 and 60 generations are Trinity's; `validate_every` 5 too. `patience`: flat generations."""

    generations: int = 60
    sigma: float = 0.03
    population: int = 0
    validate_every: int = 5
    patience: int = 5
    seed: int = 42


@dataclass(frozen=True)
class Generation:
    """One line of the log."""

    number: int
    shaped_best: float
    shaped_mean: float
    pure_best: float
    pure_mean: float
    sigma: float
    non_finite: int
    flat: bool
    validation: float | None = None


@dataclass(eq=False)
class Search:
    """Everything that a checkpoint holds."""

    cma: SepCma
    best: Floats
    best_validation: float
    flat_run: int = 0
    log: list[Generation] = field(default_factory=list)
    stopped: Stop | None = None


@dataclass(frozen=True, eq=False)
class Evolved:
    """What a search found. `accepted` says whether `difference` (chosen - start, held out) is above 0."""

    start: Floats
    chosen: Floats
    difference: Interval
    log: tuple[Generation, ...]
    stopped: Stop | None

    @property
    def accepted(self) -> bool:
        return self.difference.low > 0


Progress = Callable[[Generation], None]


def evolve(
    train: Problem,
    validation: Problem,
    held_out: Problem,
    start: Floats,
    config: EvolveConfig,
    *,
    checkpoint: Path | None = None,
    progress: Progress = lambda line: None,
) -> Evolved:
    """Searches from `start` [n]. With a `checkpoint` file it goes on where an earlier call was ended."""
    search = _restored(checkpoint) or _begun(start, config, validation)
    while search.cma.generation < config.generations and search.stopped is None:
        line = _step(search, train, validation, config)
        search.log.append(line)
        if checkpoint is not None:
            _save(checkpoint, search)
        progress(line)
    rng = np.random.default_rng([config.seed, 1])
    difference = paired_bootstrap(held_out.rewards(search.best), held_out.rewards(start), rng)
    return Evolved(start, search.best, difference, tuple(search.log), search.stopped)


def _begun(start: Floats, config: EvolveConfig, validation: Problem) -> Search:
    rng = np.random.default_rng(config.seed)
    cma = SepCma(start, config.sigma, rng, config.population)
    return Search(cma, np.asarray(start, np.float64), float(validation.rewards(start).mean()))


def _step(search: Search, train: Problem, validation: Problem, config: EvolveConfig) -> Generation:
    cma = search.cma
    candidates = cma.ask()
    check_candidates(candidates)
    found = train.fitness(candidates, cma.generation)
    order = ranked(found.shaped)
    search.flat_run = search.flat_run + 1 if order.flat else 0
    if order.flat or order.broken:
        cma.generation += 1  # drawn and counted, but nothing is learned from no signal
    else:
        cma.tell(candidates, order.fitness)
    search.stopped = _reason(search, order.broken, config)
    value = None
    if search.stopped is None and cma.generation % config.validate_every == 0:
        value = _validate(search, validation, candidates[int(np.argmax(order.fitness))])
    pure = np.where(np.isfinite(found.pure), found.pure, np.nan)
    return Generation(
        number=cma.generation,
        shaped_best=float(order.fitness.max()),
        shaped_mean=float(order.fitness.mean()),
        pure_best=float(np.nanmax(pure)) if np.isfinite(pure).any() else float("nan"),
        pure_mean=float(np.nanmean(pure)) if np.isfinite(pure).any() else float("nan"),
        sigma=cma.sigma,
        non_finite=order.non_finite,
        flat=order.flat,
        validation=value,
    )


def _reason(search: Search, broken: bool, config: EvolveConfig) -> Stop | None:
    if broken:
        return "non_finite"
    if not search.cma.finite():
        return "diverged"
    return "flat" if search.flat_run >= config.patience else None


def _validate(search: Search, validation: Problem, fittest: Floats) -> float:
    """The better of the search's mean and the generation's fittest; kept where it beats all before."""
    values = [(float(validation.rewards(point).mean()), point) for point in (search.cma.mean, fittest)]
    value, point = max(values, key=lambda pair: pair[0])
    if value > search.best_validation:
        search.best_validation, search.best = value, np.array(point)
    return value


def _save(file: Path, search: Search) -> None:
    content = {
        "numbers": search.cma.numbers(),
        "best_validation": search.best_validation,
        "flat_run": search.flat_run,
        "stopped": search.stopped,
        "log": [asdict(line) for line in search.log],
    }
    save_state(file, search.cma.arrays() | {"best": search.best}, content)


def _restored(file: Path | None) -> Search | None:
    if file is None or not file.exists():
        return None
    arrays, content = load_state(file)
    return Search(
        cma=SepCma.restored(arrays, content["numbers"]),
        best=arrays["best"],
        best_validation=content["best_validation"],
        flat_run=content["flat_run"],
        log=[Generation(**raw) for raw in content["log"]],
        stopped=content["stopped"],
    )
