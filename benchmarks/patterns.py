"""Do teams of workers beat one worker for the same tokens, and what do they cost where one would do?

Fresh sandbox worlds; tasks of wordings that are asked nowhere else: two skills in a row (`two_step`), three questions
at once (`errands`), hard to find and easy to check (`checkable`), one skill (`one_skill`). Router and conductor are the
sandbox's stand-in LLM, over HTTP, at its price; tokens and cost are of everything that a run asked, routing included.

    reward, interval, tokens, cost   per pattern and family; the interval is a bootstrap over all tasks
    equal_tokens, equal_cost         against a single that answers until it has used at least as much, by majority:
                                     the best worker of the family by the skill table, or the routed one, whichever
                                     does better; paired, bootstrapped by task over all worlds
    workflow_vs_single_interval      of that at equal tokens on `two_step`; so trinity_vs_single_interval
    token_ratio                      team ÷ single there, the worse of the two
    single_cost_ratio_one_skill      single ÷ cheapest team on the `one_skill` requests that a team answered, two calls
                                     or more. A workflow whose plan is one step is no team, and costs less: `_as_run`
                                     is single ÷ cheapest of workflow and trinity over all of these requests,
                                     `one_step_share` how many of them the workflow gave to one worker
    losses                           where a pattern is worse than a single for as much (mean difference below 0)
    engine_cpu_ms                    the engine's own CPU per decision, the dearest pattern

Figures made with a stand-in router and simulated workers compare methods; they say nothing about real models.

Run: python benchmarks/patterns.py [--seed S] [--worlds N] [--tasks N] [--cards KIND] [--quick] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import defaultdict
from typing import Any

import numpy as np
from common.engine_cost import engine_cpu_ms
from teams.matched import Attempts, best_worker
from teams.policies import FAMILIES, ONE_SKILL, exam, policies
from teams.table import Cell
from teams.world import Scene, scene

from pointsman.sandbox.tasks import Task

HEADLINE = ("workflow", "trinity")
Cells = dict[tuple[str, str], Cell]


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    began = time.monotonic()
    worlds, n = (2, 12) if arguments.quick else (arguments.worlds, arguments.tasks)
    cells: Cells = defaultdict(Cell)
    for offset in range(worlds):
        asyncio.run(measure_world(arguments.seed + offset, n, arguments, cells))
    rng = np.random.default_rng(arguments.seed)
    names = list(dict.fromkeys(name for name, _ in cells))
    table = {name: {family: cells[name, family].figures(rng) for family in arguments.families} for name in names}
    two = {name: table[name]["two_step"]["equal_tokens"] for name in HEADLINE}
    cpu = engine_cpu_ms(40 if arguments.quick else 200)
    return {
        "worlds": [arguments.seed + offset for offset in range(worlds)],
        "cards": arguments.cards,
        "tasks_per_family": n,
        "workflow_vs_single_interval": two["workflow"]["interval"],
        "trinity_vs_single_interval": two["trinity"]["interval"],
        "token_ratio": max(one["token_ratio"] for one in two.values()),
        **one_skill({name: cells[name, ONE_SKILL] for name in names}),
        "losses": losses(table),
        "engine_cpu_ms": max(cpu.values()),
        "engine_cpu_ms_by_pattern": cpu,
        "table": table,
        "seconds": round(time.monotonic() - began, 1),
    }


async def measure_world(seed: int, n: int, arguments: argparse.Namespace, cells: Cells) -> None:
    async with scene(seed, arguments.cards) as world:
        attempts = Attempts(world)
        for family, tasks in exam(seed, n).items():
            if family not in arguments.families:
                continue
            best = best_worker(seed, tasks)
            await asyncio.gather(*(one_task(world, attempts, family, task, best, cells) for task in tasks))


async def one_task(world: Scene, attempts: Attempts, family: str, task: Task, best: str, cells: Cells) -> None:
    """Every pattern on one task, and singles with as much as each of them took."""
    row = (world.seed, task.id)
    made = policies(world)
    ran = dict(zip(made, await asyncio.gather(*(world.run(one, task) for one in made.values())), strict=True))
    for name, one in ran.items():
        cell = cells[name, family]
        cell.ran[row] = one
        if name == "single":
            continue
        routed = ran["single"]
        for budget in ("tokens", "cost"):
            for baseline, worker, paid in (("best", best, None), ("routed", routed.worker or best, routed)):
                found = await attempts.matched(worker, task, one, budget, paid)
                cell.matched.setdefault((budget, baseline), {})[row] = found


def one_skill(cells: dict[str, Cell]) -> dict[str, Any]:
    """What a team costs where one worker would do, and whether it does better."""
    single = cells["single"]
    teams = {name: cell for name, cell in cells.items() if name != "single"}
    ratios = {name: cell.cost_of_single(single, fewest_calls=2) for name, cell in teams.items()}
    as_run = {name: teams[name].cost_of_single(single, fewest_calls=0) for name in HEADLINE}
    alone = [ran.calls < 2 for ran in teams["workflow"].ran.values()]
    return {
        "single_cost_ratio_one_skill": max(ratio for ratio in ratios.values() if ratio is not None),
        "single_cost_ratio_one_skill_by_pattern": ratios,
        "single_cost_ratio_one_skill_as_run": max(ratio for ratio in as_run.values() if ratio is not None),
        "one_step_share": round(sum(alone) / len(alone), 4),
        "single_reward_one_skill": single.reward,
        "team_reward_one_skill": {name: teams[name].reward for name in HEADLINE},
    }


def losses(table: dict[str, dict[str, dict[str, Any]]]) -> list[str]:
    """Every pattern, family and budget where a single does better for as much."""
    found = []
    for name, families in table.items():
        for family, figures in families.items():
            for budget in ("equal_tokens", "equal_cost"):
                against = figures.get(budget)
                if against is not None and against["difference"] < 0:
                    found.append(f"{name} on {family} at {budget}: {against['difference']} {against['interval']}")
    return found


def show(result: dict[str, Any]) -> None:
    for name, value in result.items():
        if name not in ("table", "losses"):
            print(f"{name:32} {value}")
    print(f"\n{'pattern':10}{'family':11}{'reward':>8}{'tokens':>9}{'USD·1e6':>9}  equal tokens           equal cost")
    for name, families in result["table"].items():
        for family, figures in families.items():
            columns = f"{figures['reward']:8.3f}{figures['tokens']:9.0f}{figures['cost'] * 1e6:9.1f}"
            more = "  ".join(
                f"{figures[budget]['difference']:+.3f} {figures[budget]['interval']}"
                for budget in ("equal_tokens", "equal_cost")
                if budget in figures
            )
            print(f"{name:10}{family:11}{columns}  {more}")
    for loss in result["losses"]:
        print(f"loss: {loss}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=3001, help="the first world")
    parser.add_argument("--worlds", type=int, default=5)
    parser.add_argument("--tasks", type=int, default=60, help="of each family and world")
    parser.add_argument("--cards", choices=("truthful", "world", "nonsense", "false"), default="truthful")
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES), metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="two worlds, 12 tasks of each family")
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    arguments = parser.parse_args()
    result = measure(arguments)
    show(result)
    if arguments.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
