"""Do cards route? Routing accuracy over worlds, with truthful, the world's own and nonsense cards, as served.

Routing accuracy is the share of requests routed to a worker whose success probability is within .02
of the best. Beside it, in the same run: the best single worker's accuracy, chance, and the mean
success of what was chosen next to the best single worker's and the oracle's. Exploration is off, so
that the router is measured and not its sampler. The router LLM is the sandbox's stand-in: the figures
say that better cards route better here, and nothing about real models.

Run: python benchmarks/routing_accuracy.py [--seed S] [--worlds N] [--requests N] [--quick] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from common.instance import instance
from scipy import stats

from pointsman.sandbox.drive import drive
from pointsman.sandbox.serve import serving
from pointsman.sandbox.setup import toml_text
from pointsman.sandbox.tasks import Task, tasks
from pointsman.sandbox.truth import mean_success, routing_accuracy, truth
from pointsman.sandbox.world import CardKind, World

KINDS: tuple[CardKind, ...] = ("truthful", "world", "nonsense")


@dataclass
class WorldFigures:
    """Shares from 0 to 1 for one world."""

    seed: int
    accuracy: dict[str, float]
    success: dict[str, float]
    best_single_accuracy: float
    best_single_success: float
    chance: float
    oracle: float


def measure_world(seed: int, requests: int) -> WorldFigures:
    asked = list(islice(tasks(seed, "held_out"), requests))
    accuracy, success = {}, {}
    with serving(seed) as sandbox:
        port = int(sandbox.rpartition(":")[2])
        for kind in KINDS:
            config = toml_text(seed, port, kind).replace("epsilon = 0.05", "epsilon = 0.0")
            with instance(config) as gateway:
                sent = asyncio.run(
                    drive(
                        f"{gateway.url}/v1", requests, seed, api_key=gateway.key, split="held_out", feedback_share=0.0
                    )
                )
            if sent.failed:
                raise SystemExit(
                    f"world {seed}, {kind} cards: {sum(sent.failed.values())} requests failed: {sent.failed}"
                )
            accuracy[kind] = routing_accuracy(seed, sent.picks)
            success[kind] = mean_success(seed, sent.picks)
    names = World(seed).names
    single = {name: routing_accuracy(seed, [(task, name) for task in asked]) for name in names}
    worth = {name: mean_success(seed, [(task, name) for task in asked]) for name in names}
    return WorldFigures(
        seed=seed,
        accuracy=accuracy,
        success=success,
        best_single_accuracy=max(single.values()),
        best_single_success=max(worth.values()),
        chance=statistics.mean(single.values()),
        oracle=oracle(seed, asked),
    )


def oracle(seed: int, asked: Sequence[Task]) -> float:
    known = truth(seed)
    return statistics.mean(max(known.probability(name, task.skills) for name in World(seed).names) for task in asked)


def with_interval(values: Sequence[float]) -> dict[str, float]:
    """The mean over worlds and its 95% t-interval: worlds are the unit."""
    mean = statistics.mean(values)
    if len(values) < 2:
        return {"mean": round(mean, 4), "low": float("nan"), "high": float("nan")}
    half = stats.t.ppf(0.975, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return {"mean": round(mean, 4), "low": round(mean - half, 4), "high": round(mean + half, 4)}


def run(arguments: argparse.Namespace) -> dict:
    requests = 60 if arguments.quick else arguments.requests
    worlds = [measure_world(arguments.seed + offset, requests) for offset in range(arguments.worlds)]
    rows = {f"accuracy_{kind}": [w.accuracy[kind] for w in worlds] for kind in KINDS}
    rows |= {f"success_{kind}": [w.success[kind] for w in worlds] for kind in KINDS}
    for name in ("best_single_accuracy", "best_single_success", "chance", "oracle"):
        rows[name] = [getattr(world, name) for world in worlds]
    rows["truthful_minus_best_single"] = [w.accuracy["truthful"] - w.best_single_accuracy for w in worlds]
    rows["nonsense_minus_chance"] = [w.accuracy["nonsense"] - w.chance for w in worlds]
    return {
        "requests_per_world": requests,
        "seeds": [world.seed for world in worlds],
        **{name: with_interval(values) for name, values in rows.items()},
        "worlds": [vars(world) for world in worlds],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=2001, help="the first world")
    parser.add_argument("--worlds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=300, help="held-out tasks per world and kind of cards")
    parser.add_argument("--quick", action="store_true", help="60 tasks per world")
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    arguments = parser.parse_args()
    result = run(arguments)
    for name, figure in result.items():
        if isinstance(figure, dict):
            print(f"{name:28} {figure['mean']:.3f}  [{figure['low']:.3f}, {figure['high']:.3f}]")
    if arguments.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
