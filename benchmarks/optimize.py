"""Does `pointsman optimize` find good cards, without any language model, and does its certificate hold?

Fresh sandbox worlds with deliberately poor cards (they say nothing of skills). Workers are really asked: rewards are
the verifiers' marks of single noisy answers. The search may make 1,000 calls to the router LLM (the sandbox's stand-in,
over HTTP). The last figures are on held-out wordings that neither search nor card-free baseline saw, by the skill
table, which is read for that alone. Then the same with good cards, where only what is better should be promoted.

    start          the poor cards as they route
    optimised      the search's winner (whatever its certificate says)
    card_free      the best router without cards that the same rows give (`optimising/card_free.py`)
    best_single    the worker that is best on the rows the search saw
    oracle         the best worker of every request
    gap_closed     (optimised − best_single) ÷ (oracle − best_single)
    interval       optimised − card_free: over worlds (t, worlds are the unit); per world a paired bootstrap
    certificate_holds  it was issued (lower bound above 0), and the true difference on such requests is no less
    router_calls   of the search, certification apart: the largest over worlds

Figures made with a stand-in router and simulated workers compare methods; they say nothing about real models.

Run: python benchmarks/optimize.py [--seed S] [--worlds N] [--quick] [--labels] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import statistics
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from optimising import card_free
from optimising.probes import draw, probed
from scipy import stats

from harness.optimise.budget import Budget, Spending
from harness.optimise.build import RouterLlm, router_of
from harness.optimise.calls import CountedLm
from harness.optimise.candidate import Candidate
from harness.optimise.evaluate import Evaluator
from harness.optimise.memory import Memory
from harness.optimise.optimise import Setting, optimise
from harness.optimise.report import Report
from harness.optimise.rows import Row, Rows, Splits
from harness.optimise.search import Plan
from harness.routing.base import Ask
from harness.routing.lm import chat_lm
from harness.routing.template import default_template
from pointsman.config import WorkerConfig
from pointsman.pool import Price, Worker
from pointsman.sandbox import router_llm
from pointsman.sandbox.serve import serving
from pointsman.sandbox.setup import ROUTER_PRICE, worker_configs
from pointsman.sandbox.tasks import Task
from pointsman.sandbox.truth import truth
from pointsman.sandbox.world import CardKind, World
from pointsman.statistics.episodes import paired_bootstrap
from pointsman.upstream.pooled import PooledTransport

BUDGET = 1_000
TRAIN, VALIDATION, CERTIFICATION, LAST = 1_000, 160, 300, 800


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    count = 2 if arguments.quick else arguments.worlds
    worlds = [measure_world(arguments.seed + offset, arguments) for offset in range(count)]
    names = ("start", "optimised", "card_free", "best_single", "oracle", "gap_closed")
    top: dict[str, Any] = {name: round(statistics.mean(world[name] for world in worlds), 4) for name in names}
    good = [world["good_cards"] for world in worlds]
    return {
        **top,
        "interval": over_worlds([world["optimised"] - world["card_free"] for world in worlds]),
        "certificate_holds": all(world["certificate_holds"] for world in worlds),
        "router_calls": max(world["router_calls"] for world in worlds),
        "good_cards_promoted": sum(one["promoted"] for one in good),
        "good_cards_promoted_wrongly": sum(one["promoted"] and one["true_difference"] <= 0 for one in good),
        "seconds": round(sum(world["seconds"] for world in worlds), 1),
        "worlds": worlds,
    }


def measure_world(seed: int, arguments: argparse.Namespace) -> dict[str, Any]:
    began = time.monotonic()
    scale = 0.5 if arguments.quick else 1.0
    taken: set[str] = set()
    sizes = ((TRAIN, False), (VALIDATION, False), (int(scale * CERTIFICATION), True), (int(scale * LAST), True))
    drawn = [draw(seed, str(part), n, held_out=held, taken=taken) for part, (n, held) in enumerate(sizes)]
    last, similar = drawn[3], drawn[2] + drawn[3]
    with serving(seed) as sandbox:
        url = f"{sandbox}/v1"
        parts = [
            probed(seed, url, tasks, first=1000.0 * part, labels=arguments.labels)
            for part, tasks in enumerate(drawn[:3])
        ]
        splits = Splits(*parts)
        with asyncio.Runner() as runner:
            bench = Bench(seed, url, runner)
            poor = bench.search(splits, arguments.start_cards)
            good = bench.search(splits, "truthful")
            policies = {
                one.id: bench.policy(one, similar)
                for one in (poor.found.start, poor.winner, good.found.start, good.winner)
            }
            bench.close()
    known, names = truth(seed), World(seed).names
    worth = np.array([[known.probability(name, task.skills) for name in names] for task in similar])
    value = {one: (policy * worth).sum(axis=1) for one, policy in policies.items()}
    on_last = slice(len(drawn[2]), None)
    seen = joined(splits.train, splits.validation)
    method, validated = card_free.chosen(seen, seed)
    free = (card_free.policy(seen, method, [task.prompt for task in last]) * worth[on_last]).sum(axis=1)
    best = int(seen.rewards.mean(axis=0).argmax())
    optimised, single = value[poor.winner.id][on_last], float(worth[on_last, best].mean())
    oracle = float(worth[on_last].max(axis=1).mean())
    interval = paired_bootstrap(optimised, free, np.random.default_rng(seed))
    return {
        "seed": seed,
        "start": round(float(value[poor.found.start.id][on_last].mean()), 4),
        "optimised": round(float(optimised.mean()), 4),
        "card_free": round(float(free.mean()), 4),
        "best_single": round(single, 4),
        "oracle": round(oracle, 4),
        "gap_closed": round((float(optimised.mean()) - single) / (oracle - single), 4),
        "interval": [round(interval.low, 4), round(interval.high, 4)],
        **certified(poor, value),
        "router_calls": poor.spent.calls,
        "certification_calls": poor.certification.calls,
        "router_money_usd": str(poor.spent.money),
        "card_free_method": method,
        "card_free_validation": validated,
        "winner_origin": poor.winner.origin,
        "cards": dict(poor.winner.cards),
        "good_cards": {
            "verdict": good.verdict,
            "promoted": good.verdict == "certified",
            "start": round(float(value[good.found.start.id][on_last].mean()), 4),
            "winner": round(float(value[good.winner.id][on_last].mean()), 4),
            "true_difference": round(float((value[good.winner.id] - value[good.found.start.id]).mean()), 4),
        },
        "seconds": round(time.monotonic() - began, 1),
    }


def certified(report: Report, value: dict[str, np.ndarray]) -> dict[str, Any]:
    """The certificate's numbers beside the true difference on requests of that kind."""
    true = float((value[report.winner.id] - value[report.found.start.id]).mean())
    if report.certificate is None:
        return {"certificate_holds": False, "certificate": None, "true_difference": round(true, 4)}
    better, near, oracle = report.certificate.statements
    low = float(better.numbers["low"] or 0.0)
    return {
        "certificate_holds": better.holds and true >= low,
        "certificate": {
            "better_low": round(low, 4),
            "better_estimate": round(float(better.numbers["difference"] or 0.0), 4),
            "finalists_epsilon": round(float(near.numbers["epsilon"] or 0.0), 4),
            "finalists": near.numbers["finalists"],
            "oracle_epsilon": round(float(oracle.numbers["epsilon"] or 0.0), 4),
            "alpha": report.certificate.alpha,
            "rows": report.certificate.rows,
        },
        "true_difference": round(true, 4),
    }


class Bench:
    """One world's router LLM and workers, for searches and for the last evaluation."""

    def __init__(self, seed: int, url: str, runner: asyncio.Runner) -> None:
        self.seed, self.runner = seed, runner
        self._transport = runner.run(_transport())
        self._lm = chat_lm(self._transport, url, None, 5.0)
        price = Price(ROUTER_PRICE["input"], ROUTER_PRICE["output"], ROUTER_PRICE["input"])
        self._llm = RouterLlm(router_llm.MODEL, url, price)
        self.workers = tuple(Worker.of(WorkerConfig(**entry)) for entry in worker_configs(seed, url))

    def search(self, splits: Splits, kind: CardKind) -> Report:
        cards = {name: World(self.seed).cards(kind)[name] for name in World(self.seed).names}
        start = Candidate(cards, default_template().instructions, origin=f"{kind} cards")
        setting = Setting(self._llm, World(self.seed).default, Budget(calls=BUDGET), Plan(seed=self.seed))
        return optimise(splits, start, self.workers, self._lm, setting, self.runner)

    def policy(self, candidate: Candidate, tasks: Sequence[Task]) -> np.ndarray:
        """What it does on tasks; the rewards of these rows are not known here."""
        empty = np.zeros((len(tasks), len(self.workers)))
        rows = tuple(Row(task.id, task.id, Ask(task.prompt), float(n)) for n, task in enumerate(tasks))
        lm = CountedLm(self._lm, Spending(Budget(calls=None), time.monotonic), Memory())
        evaluator = Evaluator(
            self.workers, lambda one: router_of(one, self._llm, lm), World(self.seed).default, self.runner
        )
        return evaluator.routed(candidate, Rows(World(self.seed).names, rows, empty, empty)).policy

    def close(self) -> None:
        self.runner.run(self._transport.close())


async def _transport() -> PooledTransport:
    return PooledTransport()


def joined(one: Rows, other: Rows) -> Rows:
    stacked = (np.concatenate(pair) for pair in ((one.rewards, other.rewards), (one.costs, other.costs)))
    return Rows(one.workers, one.rows + other.rows, *stacked)


def over_worlds(values: Sequence[float]) -> list[float | None]:
    """The 95% t-interval of the mean; worlds are the unit."""
    if len(values) < 2:
        return [None, None]
    mean = statistics.mean(values)
    half = float(stats.t.ppf(0.975, len(values) - 1)) * statistics.stdev(values) / math.sqrt(len(values))
    return [round(mean - half, 4), round(mean + half, 4)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=101, help="the first world")
    parser.add_argument("--worlds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="two worlds, half as many certification and last requests")
    parser.add_argument(
        "--labels", action="store_true", help="the rows carry their task's family (a request never does)"
    )
    parser.add_argument(
        "--start-cards", choices=("nonsense", "world"), default="nonsense", help="the poor cards to start from"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    arguments = parser.parse_args()
    result = measure(arguments)
    for name, figure in result.items():
        if name != "worlds":
            print(f"{name:28} {figure}")
    for world in result["worlds"]:
        print(
            f"world {world['seed']}: start {world['start']} optimised {world['optimised']} "
            f"card-free {world['card_free']} ({world['card_free_method']}) best single {world['best_single']} "
            f"oracle {world['oracle']} closed {world['gap_closed']} calls {world['router_calls']}"
        )
    if arguments.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
