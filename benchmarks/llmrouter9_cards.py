"""Cards for real models, on recorded answers: what plain and optimised cards are worth, and what can be certified.

A recorded data set (`queries`, `outcomes`, `models.json`, as `pointsman import` reads it) replayed: every model's score
on every query is known, so the value of any router is exact on it. The plain cards say what a model is and nothing of
how it scores. The search sees the split `train` alone; certification rows are the split `test`, opened once. The router
LLM is the sandbox's stand-in unless another is named: a stand-in reads words and knows no models, so its figures say
how much of the routing gain cards can carry to a reader of words, and nothing of what a real router LLM would do.

    plain, optimised   mean score on the certification rows with these cards, by the router LLM
    card_free          the best router without cards on the same training rows (`optimising/card_free.py`)
    best_single        the model that is best on the training rows
    known_task         each task's best model of the training rows, the task being told
    oracle             the best model of every query: an upper bound, luck of single answers included

Run: python benchmarks/llmrouter9_cards.py --data FOLDER [--seed S] [--quick] [--base-url URL --model ID] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from optimising import card_free

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
from pointsman.pool import Worker
from pointsman.replay.models import card_text, read_models
from pointsman.sandbox import router_llm
from pointsman.sandbox.serve import serving
from pointsman.statistics.episodes import paired_bootstrap
from pointsman.upstream.pooled import PooledTransport

BUDGET = 1_000
VALIDATION = 300


def recorded(folder: Path, seed: int, labels: bool) -> tuple[Rows, Rows]:
    """(train, test) in a random order: the data set has no time. Only queries that every model answered."""
    import pyarrow.parquet as parquet

    queries = parquet.read_table(folder / "queries.parquet").to_pylist()
    outcomes = parquet.read_table(folder / "outcomes.parquet").to_pylist()
    names = tuple(sorted({one["model"] for one in outcomes}))
    scores: dict[str, dict[str, float]] = {}
    for one in outcomes:
        scores.setdefault(one["query_id"], {})[one["model"]] = float(one["score"])
    whole = [query for query in queries if len(scores.get(query["id"], {})) == len(names)]
    order = np.random.default_rng(seed).permutation(len(whole))
    parts = [
        _rows([whole[i] for i in order if whole[i]["split"] == part], names, scores, labels)
        for part in ("train", "test")
    ]
    return parts[0], parts[1]


def _rows(
    queries: list[dict[str, Any]], names: tuple[str, ...], scores: dict[str, dict[str, float]], labels: bool
) -> Rows:
    rows = tuple(
        Row(str(query["id"]), str(query["id"]), Ask(query["text"]), float(n), query["task"] if labels else None)
        for n, query in enumerate(queries)
    )
    rewards = np.array([[scores[query["id"]][name] for name in names] for query in queries])
    return Rows(names, rows, rewards, np.full(rewards.shape, np.nan))


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    began = time.monotonic()
    learned, test = recorded(arguments.data, arguments.seed, labels=not arguments.no_labels)
    if arguments.quick:
        learned, test = learned.take(range(1_200)), test.take(range(300))
    splits = Splits(learned.take(range(VALIDATION, len(learned))), learned.take(range(VALIDATION)), test)
    entries = read_models(arguments.data)
    plain = {name: card_text(name, entries[name], arguments.data.name) for name in learned.workers}
    with router(arguments) as (url, llm), asyncio.Runner() as runner:
        transport = runner.run(_transport())
        lm = chat_lm(transport, url, arguments.key, 5.0)
        workers = tuple(Worker(name=name, card=plain[name], model=name, endpoints=()) for name in learned.workers)
        best = learned.workers[int(learned.rewards.mean(axis=0).argmax())]
        start = Candidate(plain, default_template().instructions, origin="plain cards")
        setting = Setting(llm, best, Budget(calls=BUDGET), Plan(seed=arguments.seed))
        report = optimise(splits, start, workers, lm, setting, runner)
        apart = CountedLm(lm, Spending(Budget(calls=None), time.monotonic), Memory())
        evaluator = Evaluator(workers, lambda one: router_of(one, llm, apart), best, runner)
        values = {
            one.id: (evaluator.routed(one, test).policy * test.rewards).sum(axis=1) for one in (start, report.winner)
        }
        runner.run(transport.close())
    return figures(report, learned, test, values, arguments.seed) | {"seconds": round(time.monotonic() - began, 1)}


def figures(report: Report, learned: Rows, test: Rows, values: dict[str, np.ndarray], seed: int) -> dict[str, Any]:
    plain, optimised = values[report.found.start.id], values[report.winner.id]
    method, validated = card_free.chosen(learned, seed)
    free = (card_free.policy(learned, method, test.texts) * test.rewards).sum(axis=1)
    single = test.rewards[:, int(learned.rewards.mean(axis=0).argmax())]
    rng = np.random.default_rng(seed)
    pairs = {"optimised_minus_plain": plain, "optimised_minus_card_free": free, "optimised_minus_best_single": single}
    intervals = {name: paired_bootstrap(optimised, other, rng) for name, other in pairs.items()}
    return {
        "rows": {"train": len(report.splits.train), "validation": len(report.splits.validation), "test": len(test)},
        "plain": round(float(plain.mean()), 4),
        "optimised": round(float(optimised.mean()), 4),
        "card_free": round(float(free.mean()), 4),
        "card_free_method": method,
        "card_free_validation": validated,
        "best_single": round(float(single.mean()), 4),
        "known_task": known_task(learned, test),
        "oracle": round(float(test.rewards.max(axis=1).mean()), 4),
        **{name: [round(one.estimate, 4), round(one.low, 4), round(one.high, 4)] for name, one in intervals.items()},
        "verdict": report.verdict,
        "certificate": [
            {"claim": one.claim, "holds": one.holds, "alpha": one.alpha, "said": one.said, **one.numbers}
            for one in (report.certificate.statements if report.certificate else ())
        ],
        "router_calls": report.spent.calls,
        "certification_calls": report.certification.calls,
        "winner_origin": report.winner.origin,
        "cards": dict(report.winner.cards),
    }


def known_task(learned: Rows, test: Rows) -> float | None:
    """None where the rows carry no task."""
    tasks = np.array([row.task or "" for row in learned.rows])
    if not tasks.any():
        return None
    best = {task: int(learned.rewards[tasks == task].mean(axis=0).argmax()) for task in set(tasks)}
    return round(float(np.mean([test.rewards[n, best[row.task or ""]] for n, row in enumerate(test.rows)])), 4)


@contextmanager
def router(arguments: argparse.Namespace) -> Iterator[tuple[str, RouterLlm]]:
    """The router LLM: the one that is named, else the stand-in behind the sandbox's server."""
    if arguments.base_url:
        yield arguments.base_url, RouterLlm(arguments.model, arguments.base_url)
        return
    with serving(1) as sandbox:
        yield f"{sandbox}/v1", RouterLlm(router_llm.MODEL, f"{sandbox}/v1")


async def _transport() -> PooledTransport:
    return PooledTransport()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the data set's folder")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="1,200 queries to learn from, 300 to certify with")
    parser.add_argument("--no-labels", action="store_true", help="the rows carry no task")
    parser.add_argument("--base-url", help="of a router LLM in place of the stand-in")
    parser.add_argument("--model", default="router", help="its model id")
    parser.add_argument("--key", help="its API key")
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    arguments = parser.parse_args()
    if arguments.data is None:
        print("left out: it needs a recorded data set (--data)")
        return
    result = measure(arguments)
    for name, value in result.items():
        print(f"{name:28} {value}")
    if arguments.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
