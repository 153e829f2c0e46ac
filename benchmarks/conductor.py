"""Does a small model learn to plan workflows, and does GRPO add to supervised fine-tuning?

Sandbox worlds (a simulation: workers are programs that fail at known rates; some are described wrongly). A Qwen3 of
2 million parameters, untrained, learns from rollouts that ended well, then by GRPO on contested requests. Everything is
judged on wordings that no training asked, with random pools of workers in random orders, greedily, as it would serve.

    best_single, prompted, sft, sft_continued, expert_iteration, grpo, evolved
                                   share of two-skill requests answered rightly; `all` has it over all requests
    grpo_vs_best_control_interval  reward of grpo minus that of the best control (95%, paired over requests of all
                                   worlds); `_of_worlds` takes the worlds as the unit; `refused` says why where the
                                   lower end is not above 0
    parse_rate                     of grpo's plans, all requests
    cost_ratio                     USD per request solved, grpo ÷ prompted conductor, orchestration included
    plateau                        of each world's chosen SFT run: flat over the last third of its curve

Run: python benchmarks/conductor.py [--seed S] [--worlds N] [--quick] [--json] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from conducting.methods import CONTROLS, Ran, Recipe, run_all
from conducting.world import Sizes, World, best_single, make_world, means, of_two_skills, prompted
from teams.table import over_worlds

from distill.conductor.grpo import ConductorGrpo
from distill.conductor.judging import Judged
from distill.conductor.sft import ConductorSft
from distill.conductor.tiny import TinyConfig, make_tiny, sandbox_texts
from distill.evaluate.values import two_sided
from pointsman.statistics.episodes import paired_bootstrap

FIRST_WORLD = 300
"""Below the held-out worlds: there training has wordings of its own, and held-out requests others."""
METHODS = ("best_single", "prompted", "sft", "sft_continued", "expert_iteration", "grpo", "evolved")


def full(seed: int) -> tuple[Sizes, Recipe]:
    sft = ConductorSft((7e-4, 1.5e-3, 3e-3), steps=320, look_every=40, seed=seed)
    grpo = ConductorGrpo(steps=40, groups=4, generations=12, look_every=8, seed=seed, max_new=80)
    return Sizes(1_200, 48, 240, 1), Recipe(sft, grpo, 90)


def quick(seed: int) -> tuple[Sizes, Recipe]:
    sft = ConductorSft((1.5e-3,), steps=120, look_every=20, seed=seed)
    grpo = ConductorGrpo(steps=10, groups=2, generations=12, look_every=5, seed=seed, max_new=80)
    return Sizes(600, 24, 80, 1), Recipe(sft, grpo, 30)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    began = time.perf_counter()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    seeds = [FIRST_WORLD + arguments.seed * 10 + number for number in range(1 if arguments.quick else arguments.worlds)]
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        for seed in seeds:
            sizes, recipe = (quick if arguments.quick else full)(seed)
            world = make_world(seed, sizes, arguments.cards)
            folder = Path(scratch) / str(seed)
            base = make_tiny(folder / "tiny", TinyConfig(seed=seed), sandbox_texts([seed], 400))
            ran = run_all(world, base, recipe, folder, lambda line: print(line, flush=True))
            found.append((world, ran, {"best_single": best_single(world), "prompted": prompted(world)} | ran.judged))
    result = told(found, arguments.seed) | {"worlds": seeds, "seconds": round(time.perf_counter() - began, 1)}
    if arguments.out is not None:
        write(arguments.out, result, found)
    return result


def told(found: list[tuple[World, Ran, dict[str, Judged]]], seed: int) -> dict[str, Any]:
    """The figures over all worlds."""
    by_method = {name: [judged[name] for _, _, judged in found] for name in METHODS}
    totals = {name: np.concatenate([one.totals for one in judged]) for name, judged in by_method.items()}
    control = max(CONTROLS, key=lambda name: float(totals[name].mean()))
    difference = paired_bootstrap(totals["grpo"], totals[control], np.random.default_rng(seed))
    of_worlds = over_worlds([float((j["grpo"].totals - j[control].totals).mean()) for _, _, j in found])
    everything = Judged(tuple(rolled for one in by_method["grpo"] for rolled in one.rolled))
    asked = Judged(tuple(rolled for one in by_method["prompted"] for rolled in one.rolled))
    taught = [ran.grpo.taught for _, ran, _ in found]
    reason = None if difference.low > 0 else "no_signal" if not any(taught) else "interval reaches 0"
    return {
        **{name: means([of_two_skills(w, j[name]) for w, _, j in found]) for name in METHODS},
        "grpo_vs_best_control_interval": two_sided(difference),
        "grpo_vs_best_control": round(difference.estimate, 4),
        "grpo_vs_best_control_interval_of_worlds": of_worlds,
        "best_control": control,
        "parse_rate": round(everything.parse_rate, 4),
        "cost_ratio": round(everything.cost_per_solved / asked.cost_per_solved, 4),
        "refused": reason,
        "all": {name: means(judged) for name, judged in by_method.items()},
        "reward_all": {name: round(float(values.mean()), 4) for name, values in totals.items()},
        "plateau": [ran.sft.chosen.plateau for _, ran, _ in found],
        "learning_rate": [ran.sft.chosen.learning_rate for _, ran, _ in found],
        "rollouts": [ran.grpo.tally.rollouts for _, ran, _ in found],
        "groups": [
            {name: asdict(ran.grpo.tally)[name] for name in ("live", "zero_spread", "unknown")} for _, ran, _ in found
        ],
        "contested": [ran.contested for _, ran, _ in found],
        "seconds_by_part": [ran.seconds for _, ran, _ in found],
    }


def write(folder: Path, result: dict[str, Any], found: list[tuple[World, Ran, dict[str, Judged]]]) -> None:
    """Table and curves as files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "conductor.json").write_text(json.dumps(result, indent=1) + "\n")
    curves = {str(world.seed): ran.curves() for world, ran, _ in found}
    (folder / "curves.json").write_text(json.dumps(curves, indent=1) + "\n")
    lines = ["world,method,requests,right,reward,parse_rate,cost_per_solved_usd,steps"]
    for world, _, judged in found:
        for name in METHODS:
            one = judged[name].figures()
            row = (one["right"], one["reward"], one["parse_rate"], one["cost_per_solved"], one["steps"])
            lines.append(",".join(map(str, (world.seed, name, len(world.held_out), *row))))
    (folder / "table.csv").write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one world, one learning rate, few steps")
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--worlds", type=int, default=3)
    parser.add_argument("--cards", choices=("world", "truthful"), default="world")
    parser.add_argument("--threads", type=int, default=0, help="of torch; on a busy machine 1 is quicker than 2")
    parser.add_argument("--out", type=Path, help="a folder for table and curves")
    arguments = parser.parse_args()
    result = measure(arguments)
    for name, value in result.items():
        print(f"{name:40} {value}")
    if arguments.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
