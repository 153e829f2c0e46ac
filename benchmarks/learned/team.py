"""One fresh sandbox world of teams: distilled, distilled on, evolved, on episodes that the engine runs.

Workers are the sandbox's programs as plain functions: the same replies as over HTTP, without its cost.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from distill.arrays import Floats
from distill.evolve.controls import random_search
from distill.evolve.episodes import EpisodeProblem, Team, in_this_process
from distill.evolve.imitation import Distilled, continued, start
from distill.evolve.loop import EvolveConfig, Evolved, evolve
from distill.evolve.sandbox_team import TaskStates, alone_plays, pool_of, team_exam
from distill.evolve.sepcma import SepCma
from distill.threads import one_thread
from harness.engine.patterns.single import Single
from harness.engine.patterns.trinity import Trinity
from harness.engine.workers import LocalWorkers
from pointsman.sandbox.tasks import Split
from pointsman.sandbox.truth import truth
from pointsman.sandbox.worker_program import WorkerProgram
from pointsman.sandbox.world import World

SPLITS: tuple[Split, ...] = ("train", "validation", "held_out")


def team_world(world: int, tasks: int, generations: int) -> dict[str, Any]:
    """Rewards per held-out task, and what the search took; `tasks` are searched on, twice as many held out."""
    sizes = dict(zip(SPLITS, (tasks, max(20, tasks * 2 // 3), tasks * 2), strict=True))
    config = EvolveConfig(generations=generations, sigma=0.3, seed=world)
    with one_thread():
        problems = _problems(world, sizes)
        train, validation, held = (problems[split] for split in SPLITS)
        alone = _alone(world, sizes["train"], train.arms)
        begun = start(train, validation, alone, world)
        before, began = train.played, time.monotonic()
        found = evolve(train, validation, held, begun.point, config)
        seconds, played = time.monotonic() - began, train.played - before
        # The baseline plays from a memory of its own: what the search has played is no gift to it, nor the reverse.
        fresh = _problems(world, sizes)
        more = continued(fresh["train"], fresh["validation"], begun, world, seconds=seconds, episodes=played)
        return _earned(held, train, begun, more, found, config, world) | {
            "best_alone": float(alone.mean(axis=0).max()),
            "played": played,
            "search_s": seconds,
            "continued_rounds": more.rounds,
        }


def _earned(
    held: EpisodeProblem,
    train: EpisodeProblem,
    begun: Distilled,
    more: Distilled,
    found: Evolved,
    config: EvolveConfig,
    seed: int,
) -> dict[str, Any]:
    earned = {
        "sft": held.rewards(begun.point),
        "continued": held.rewards(more.point),
        "evolved": held.rewards(found.chosen),
    }
    best = max(("sft", "continued"), key=lambda name: float(earned[name].mean()))
    rng = np.random.default_rng([seed, 2])
    population = SepCma(found.start, 1, np.random.default_rng(0)).population
    shuffled = begun.point + rng.permutation(found.chosen - begun.point)
    searched = random_search(
        train, begun.point, evaluations=len(found.log) * population, sigma=config.sigma, rng=rng
    )  # fmt: skip
    return earned | {
        "best": earned[best],
        "shuffled": float(held.rewards(shuffled).mean()),
        "random": float(held.rewards(searched).mean()),
    }


def _problems(world: int, sizes: dict[Split, int]) -> dict[Split, EpisodeProblem]:
    exams = {split: team_exam(world, split, size) for split, size in sizes.items()}
    prompts = {split: [task.prompt for task in exam] for split, exam in exams.items()}
    states = TaskStates.fit(prompts["train"], world)
    pool = pool_of(world, "http://127.0.0.1:1")
    arms = tuple(sorted(worker.name for worker in pool.workers))
    workers = local_workers(world)
    return {
        split: EpisodeProblem(
            states.rows(prompts[split]),
            arms,
            in_this_process(Team(pool, workers, exams[split], Trinity, world).play),
            seed=world,
        )
        for split in sizes
    }


def _alone(world: int, size: int, arms: Any) -> Floats:
    team = Team(
        pool_of(world, "http://127.0.0.1:1"), local_workers(world), team_exam(world, "train", size), Single, world
    )
    earned = in_this_process(team.play)(alone_plays(size, arms))
    return np.array(earned, np.float64).reshape(size, len(arms))


def local_workers(world: int) -> LocalWorkers:
    """The world's worker programs as functions."""
    success = truth(world).success
    programs = {worker.name: WorkerProgram(worker, world, success[worker.name]) for worker in World(world).workers}

    async def answering(name: str, messages: list[dict[str, Any]], tools: Any) -> str:
        return programs[name].reply({"messages": messages}).text or ""

    return LocalWorkers(answering)
