"""Does sep-CMA-ES add to supervised distillation, and how long is a generation?

`generation_s`: one generation of 34 candidates × 4,193 requests on random states of width 1,024 with nine
workers, drawn, scored and told; the median of several. `tuned_candidate_s`: one candidate of SVF on the last
two layers of MiniLM, everything below cached, over 256 requests.

`sft`, `sft_continued`, `evolved`: mean reward of whole episodes on held-out wordings of fresh sandbox worlds (a
simulation: workers are programs that fail at known rates). A team of thinker, solver and verifier answers in at most
five turns, run by the pattern engine; a candidate ranks workers for each role. `sft` is distilled from what each
worker earns alone, the best of three learning rates × two temperatures by validation; `sft_continued` goes on
from it on episodes played with chance workers in its own roles, for at least the time and the episodes that the
search took; `evolved` is what the search's validation chose. `difference_interval` is evolved minus the better of the
two by held-out reward, paired over tasks; `refused` says that its lower end is not above 0. Controls: the found change
with its entries shuffled, and random search at equal cost.

`single_turn_*` are the same on decisions of one turn, with MiniLM states and success probabilities (`--single-turn`).

Beside it the search itself, on a 1,000-dimensional ellipsoid of condition 1e6: ours and the library `cmaes`.

Run: python benchmarks/evolution.py [--seed S] [--worlds N] [--tasks N] [--single-turn] [--quick] [--json]
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import cmaes
import numpy as np
import torch
from common.report import run
from learned.team import team_world

from distill.arrays import Floats
from distill.classic.teacher import soft_labels
from distill.evaluate.values import two_sided
from distill.evolve.controls import run_controls
from distill.evolve.loop import EvolveConfig, evolve
from distill.evolve.replay import HeadReplay
from distill.evolve.sepcma import SepCma
from distill.evolve.tail import Tail, TunedReplay
from distill.features.sentence import SentenceEncoder
from distill.router_model.backbone import BackboneConfig, load_backbone
from distill.router_model.heads import IndexHead
from distill.sft.loop import SftConfig, SftData, train
from distill.sft.states import CachedStates
from pointsman.sandbox.tasks import Split, Task, tasks
from pointsman.sandbox.truth import truth
from pointsman.statistics.episodes import paired_bootstrap

CANDIDATES, REQUESTS, WIDTH, WORKERS = 34, 4193, 1024, 9
RATES, TEMPERATURES = (0.003, 0.01, 0.03), (0.03, 0.1)
FIRST_WORLD = 3001
CACHE = Path(".pointsman/features")


@dataclass(frozen=True, eq=False)
class Part:
    """Tasks of one split: states, realised rewards (one run of each worker) and success probabilities."""

    states: Floats
    rewards: Floats
    success: Floats


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    seed, quick = arguments.seed, arguments.quick
    result: dict[str, Any] = {"generation_s": round(generation_seconds(seed, 5 if quick else 15), 4)}
    if not arguments.only_episodes:
        result |= tuned_seconds(64 if quick else 256)
        result |= ellipsoid(1_000 if quick else 12_000, seed)
    numbers = [FIRST_WORLD + seed * 10 + number for number in range(1 if quick else arguments.worlds)]
    with ProcessPoolExecutor(min(len(numbers), arguments.processes), get_context("spawn")) as pool:
        size = (40, 6) if quick else (arguments.tasks, arguments.generations)
        result |= summary(list(pool.map(team_world, numbers, *([one] * len(numbers) for one in size))), seed)
    if arguments.single_turn:
        told = summary([added(number, quick) for number in numbers], seed)
        result |= {f"single_turn_{name}": value for name, value in told.items()}
    return result


def summary(worlds: list[dict[str, Any]], seed: int) -> dict[str, Any]:
    """Over the held-out tasks of all worlds."""
    single, best, evolved = (np.concatenate([world[name] for world in worlds]) for name in ("sft", "best", "evolved"))
    difference = paired_bootstrap(evolved, best, np.random.default_rng(seed))
    result: dict[str, Any] = {
        "sft": round(float(single.mean()), 4),
        "sft_continued": round(float(np.concatenate([world["continued"] for world in worlds]).mean()), 4),
        "evolved": round(float(evolved.mean()), 4),
        "difference": round(difference.estimate, 4),
        "difference_interval": two_sided(difference),
        "refused": not difference.low > 0,
        "control_shuffled": round(float(np.mean([world["shuffled"] for world in worlds])), 4),
        "control_random_search": round(float(np.mean([world["random"] for world in worlds])), 4),
        "worlds": len(worlds),
        "tasks": len(best),
        "differences_by_world": [round(float((w["evolved"] - w["best"]).mean()), 4) for w in worlds],
    }
    if "oracle" in worlds[0]:
        result["oracle"] = round(float(np.concatenate([world["oracle"] for world in worlds]).mean()), 4)
    for name in ("best_alone", "played", "search_s", "continued_rounds"):
        if name in worlds[0]:
            result[name] = round(float(np.mean([world[name] for world in worlds])), 4)
    return result


def generation_seconds(seed: int, rounds: int) -> float:
    """Median seconds of ask, fitness and tell."""
    rng = np.random.default_rng(seed)
    states = rng.standard_normal((REQUESTS, WIDTH)).astype(np.float32)
    problem = HeadReplay(states, rng.random((REQUESTS, WORKERS)))
    cma = SepCma(np.zeros(WORKERS * WIDTH), 0.03, rng, CANDIDATES)
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        candidates = cma.ask()
        cma.tell(candidates, problem.fitness(candidates, cma.generation).shaped)
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds))


def tuned_seconds(requests: int) -> dict[str, Any]:
    """Where the time of an SVF candidate goes: the two last layers on cached inputs, and the head."""
    from distill.svf import SvfConfig, adapt, choose, count_offsets

    backbone = load_backbone(BackboneConfig())
    texts = [task.prompt for task in tasks(FIRST_WORLD, "train", requests)]
    backbone.model = adapt(backbone.model, SvfConfig(target_modules=choose(backbone.model, layers=[-2, -1])))
    started = time.perf_counter()
    tail = Tail(backbone, texts, 2)
    captured = time.perf_counter() - started
    offsets = count_offsets(backbone.model)
    problem = TunedReplay(tail, backbone.model, np.random.default_rng(0).random((requests, WORKERS)), offsets)
    candidate = np.zeros((1, offsets + WORKERS * backbone.width))
    started = time.perf_counter()
    problem.fitness(candidate, 0)
    whole = time.perf_counter() - started
    backbone.model.merge_adapter()
    started = time.perf_counter()
    tail.states()
    layers = time.perf_counter() - started
    return {
        "tuned_offsets": offsets,
        "tuned_requests": requests,
        "tuned_capture_s": round(captured, 3),
        "tuned_candidate_s": round(whole, 3),
        "tuned_layers_s": round(layers, 3),
        "tuned_cache_mb": round(tail.bytes / 1e6, 1),
    }


def ellipsoid(generations: int, seed: int, size: int = 1000) -> dict[str, Any]:
    """f = Σ 1e6^(i/(n-1)) x_i² from x = 1 at σ = .5, after as many generations; ours and `cmaes`."""
    weights = 1e6 ** (np.arange(size) / (size - 1))
    ours = SepCma(np.ones(size), 0.5, np.random.default_rng(seed))
    library = cmaes.SepCMA(np.ones(size), 0.5, seed=seed, population_size=ours.population)
    for _ in range(generations):
        candidates = ours.ask()
        ours.tell(candidates, -(candidates**2) @ weights)
    for _ in range(generations):
        drawn = [library.ask() for _ in range(library.population_size)]
        library.tell([(point, float(point**2 @ weights)) for point in drawn])
    return {
        "ellipsoid_evaluations": generations * ours.population,
        "ellipsoid_ours": float(f"{float(ours.mean**2 @ weights):.3g}"),
        "ellipsoid_cmaes": float(f"{float(library.mean**2 @ weights):.3g}"),
    }


def added(world: int, quick: bool) -> dict[str, Any]:
    """One fresh world: SFT, SFT continued, evolved, and the controls; success per held-out task."""
    size = 300 if quick else 1500
    parts = {split: _part(world, split, size) for split in ("train", "validation", "held_out")}
    start, temperature, rate = _best_sft(parts, world, quick)
    started = time.perf_counter()
    config = EvolveConfig(generations=20 if quick else 120, seed=world)
    problems = {split: HeadReplay(part.states, part.rewards) for split, part in parts.items()}
    found = evolve(problems["train"], problems["validation"], problems["held_out"], start, config)
    seconds = time.perf_counter() - started
    continued = _continued(parts, start, temperature, rate, seconds, world)
    held = parts["held_out"]
    truly = HeadReplay(held.states, held.success)
    evaluations = len(found.log) * SepCma(start, 1, np.random.default_rng(0)).population
    controls = run_controls(
        problems["train"], truly, start, found.chosen, evaluations=evaluations, sigma=config.sigma, seed=world
    )
    earned = {
        "sft": truly.rewards(start),
        "continued": truly.rewards(continued),
        "evolved": truly.rewards(found.chosen),
    }
    best = max(("sft", "continued"), key=lambda name: float(earned[name].mean()))
    return earned | {
        "best": earned[best],
        "oracle": held.success.max(axis=1),
        "shuffled": controls.shuffled,
        "random": controls.random_search,
    }


def _part(world: int, split: Split, size: int) -> Part:
    drawn = list(tasks(world, split, size))
    table = truth(world)
    success = np.array([[table.probability(worker, task.skills) for worker in sorted(table.success)] for task in drawn])
    rng = np.random.default_rng([world, len(split)])
    return Part(_states(drawn), (rng.random(success.shape) < success).astype(np.float64), success)


def _states(drawn: list[Task]) -> Floats:
    rows = SentenceEncoder().cached(CACHE, [task.prompt for task in drawn]) * 4
    return np.hstack([rows, np.ones((len(rows), 1))]).astype(np.float32)


def _best_sft(parts: dict[Split, Part], seed: int, quick: bool) -> tuple[Floats, float, float]:
    """The flat head of the best learning rate and temperature by validation reward."""
    found = []
    for rate in RATES[1:2] if quick else RATES:
        for temperature in TEMPERATURES[:1] if quick else TEMPERATURES:
            head = IndexHead(parts["train"].states.shape[1], [str(n) for n in range(parts["train"].rewards.shape[1])])
            config = SftConfig(learning_rate=rate, seed=seed, epochs=80, patience=25)
            reward = train(head, _data(parts, temperature, seed), config).held_out_reward
            found.append((reward, head.arms.detach().numpy().astype(np.float64).ravel(), temperature, rate))
    _, flat, temperature, rate = max(found, key=lambda one: one[0])
    return flat, temperature, rate


def _data(parts: dict[Split, Part], temperature: float, seed: int) -> SftData:
    """Labels are ridge predictions of the rewards: single draws of 0 and 1 teach luck."""
    training, validation = parts["train"], parts["validation"]
    gram = training.states.T @ training.states + np.eye(training.states.shape[1])
    smooth = training.states @ np.linalg.solve(gram, training.states.T @ training.rewards)
    states = np.vstack([training.states, validation.states])
    targets = np.vstack([soft_labels(smooth, temperature), np.full(validation.rewards.shape, 1 / smooth.shape[1])])
    rewards = np.vstack([training.rewards, validation.rewards])
    size = len(training.states)
    return SftData(CachedStates(states), targets, rewards, np.arange(size), np.arange(size, len(states)))


def _continued(
    parts: dict[Split, Part], start: Floats, temperature: float, rate: float, seconds: float, seed: int
) -> Floats:
    """SFT that goes on from `start` for at least `seconds`, the best point by validation."""
    head = IndexHead(parts["train"].states.shape[1], [str(n) for n in range(parts["train"].rewards.shape[1])])
    with torch.no_grad():
        head.arms.copy_(torch.as_tensor(start.reshape(head.arms.shape)))
    ends = time.perf_counter() + seconds
    turn = 0
    while time.perf_counter() < ends:
        turn += 1
        config = SftConfig(learning_rate=rate / 3, seed=seed + turn, epochs=20, patience=20)
        train(head, _data(parts, temperature, seed), config)
    return head.arms.detach().numpy().astype(np.float64).ravel()


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--worlds", type=int, default=5, help="fresh sandbox worlds")
    parser.add_argument("--tasks", type=int, default=150, help="team tasks that are searched on in each world")
    parser.add_argument("--generations", type=int, default=40, help="of the search on episodes")
    parser.add_argument("--processes", type=int, default=2, help="worlds at a time")
    parser.add_argument("--only-episodes", action="store_true", help="leave out the last layers and the ellipsoid")
    parser.add_argument("--single-turn", action="store_true", help="decisions of one turn, too")


if __name__ == "__main__":
    run(__doc__, measure, "one world, few tasks, a short search", options)
