"""Does the learned router beat the best single worker and a task classifier, on data of real models?

Takes any folder of the layout of `pointsman import` (full information: every model on every query).
Without `--nested`: fitted on `split = train`, judged once on `split = test`. With it: the pooled
out-of-fold decisions of a repeated outer 5-fold over all queries; everything is chosen on the inner rows,
the backbone's frozen states are cached. Tasks are used in training, never at prediction.

Best single, known task (a ceiling, not a router), task classifier (sentence embedding only), teacher, learned
router (card head on the backbone's state and cheap extras), index head (distilled), and oracle; the gap
closed; what a new worker brings without retraining; what masking a worker costs against refitting; and cost
at matched quality. Intervals are 95% bootstrap intervals over queries, paired where two routers are compared.

Run: python benchmarks/learned_router.py --data FOLDER [--nested] [--repeats R] [--backbone NAME] [--json]
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from learned.fold import Judged, Options, judge

from distill.evaluate.adding import pooled_ratio
from distill.evaluate.folds import stratified_folds
from distill.evaluate.values import gap_closed, two_sided
from distill.features.sentence import SentenceEncoder
from distill.recorded import read_table
from distill.router_model.backbone import BackboneConfig, load_backbone
from distill.router_model.prompt import PromptConfig
from distill.table import RewardTable
from pointsman.errors import UserError
from pointsman.statistics.arrays import Interval
from pointsman.statistics.episodes import paired_bootstrap

NORM = 4.0
ROUTERS = ("best_single", "task_classifier", "teacher", "learned", "oracle")


def main() -> None:
    arguments = _arguments()
    if arguments.data is None:
        print("nothing to measure: --data FOLDER names recorded outcomes of real models (see `pointsman import`)")
        return
    started = time.monotonic()
    table = read_table(arguments.data)
    table = table.rows(table.full)
    cache = arguments.cache
    states = _states(table, arguments.backbone, cache)
    cards = SentenceEncoder().cached(cache, [arm.card for arm in table.arms])
    parts: list[list[Judged]] = []
    for repeat in range(arguments.repeats if arguments.nested else 1):
        parts.append([])
        for training, other in _folds(table, arguments, repeat):
            options = _options(arguments, repeat)
            parts[-1].append(judge(table, states, cards, training, other, options))
            _say(parts[-1][-1], repeat, time.monotonic() - started)
    result = _report(parts, arguments.seed, table)
    result |= {"backbone": arguments.backbone, "seconds": round(time.monotonic() - started, 1)}
    for name, value in result.items():
        print(f"{name:28} {value}")
    if arguments.json:
        print(json.dumps(result))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder: queries, outcomes, models.json")
    parser.add_argument("--nested", action="store_true", help="pooled outer 5-fold over all queries")
    parser.add_argument("--repeats", type=int, default=2, help="of the outer folds")
    parser.add_argument("--backbone", default="minilm", help="minilm, a model's folder, or a hub name")
    parser.add_argument("--cache", type=Path, default=Path(".pointsman/features"), help="where states are kept")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="one outer fold or split, few trees, no mask refits")
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    return parser.parse_args()


def _options(arguments: argparse.Namespace, repeat: int) -> Options:
    seed = arguments.seed + 1000 * repeat
    if arguments.quick:
        return Options(trees=40, draws=2, masks=False, seed=seed, probes=(100,))
    return Options(seed=seed, masks=repeat == 0, adding=repeat == 0)


def _folds(table: RewardTable, arguments: argparse.Namespace, repeat: int) -> list[tuple[Any, Any]]:
    if arguments.nested:
        _, numbers = table.task_numbers()
        folds = list(stratified_folds(numbers, 5, arguments.seed + repeat, table.texts))
        return folds[:1] if arguments.quick else folds
    splits = np.array([split or "" for split in table.splits])
    training, other = np.flatnonzero(splits == "train"), np.flatnonzero(splits == "test")
    if not len(training) or not len(other):
        raise UserError("the data has no `train` and `test` in its column split: use --nested")
    return [(training, other)]


def _states(table: RewardTable, name: str, cache: Path) -> Any:
    """The backbone's states, scaled to a mean norm of 4."""
    tagged = BackboneConfig(name, None, "penultimate", PromptConfig("tagged"))
    config = BackboneConfig() if name == "minilm" else tagged
    states = load_backbone(config).states(table.texts, cache)
    return states * np.float32(NORM / np.linalg.norm(states, axis=1).mean())


def _say(judged: Judged, repeat: int, seconds: float) -> None:
    values = " ".join(f"{name} {np.mean(earned):.4f}" for name, earned in judged.earned.items())
    print(f"repeat {repeat}, {len(judged.rows)} rows, {seconds:.0f} s: {values} {judged.notes}", flush=True)


def _pooled(parts: list[list[Judged]], size: int) -> tuple[dict[str, Any], Any]:
    """Rewards per judged row by router, averaged over repeats; and the rows that were judged."""
    names = parts[0][0].earned
    sums = {name: np.zeros(size) for name in names}
    counts = np.zeros(size)
    for judged in (fold for folds in parts for fold in folds):
        counts[judged.rows] += 1
        for name, earned in judged.earned.items():
            sums[name][judged.rows] += earned
    seen = counts > 0
    return {name: total[seen] / counts[seen] for name, total in sums.items()}, seen


def _report(parts: list[list[Judged]], seed: int, table: RewardTable) -> dict[str, Any]:
    earned, _ = _pooled(parts, len(table))
    rng = np.random.default_rng(seed)
    single, learned = earned["best_single"], earned["learned"]
    gap = gap_closed(learned, single, earned["oracle"], rng)
    result: dict[str, Any] = {name: round(float(earned[name].mean()), 4) for name in ROUTERS}
    result |= {
        "known_task": round(float(earned["known_task"].mean()), 4),
        "index_head": round(float(earned["index_head"].mean()), 4),
        "gap_closed": round(gap.closed, 3),
        "gap_interval": [round(gap.low, 3), round(gap.high, 3)],
        "vs_best_single": round(float((learned - single).mean()), 4),
        "vs_best_single_interval": two_sided(paired_bootstrap(learned, single, rng)),
        "vs_task_classifier": round(float((learned - earned["task_classifier"]).mean()), 4),
        "vs_task_classifier_interval": two_sided(paired_bootstrap(learned, earned["task_classifier"], rng)),
        "teacher_vs_task_classifier_interval": two_sided(
            paired_bootstrap(earned["teacher"], earned["task_classifier"], rng)
        ),
        "learned_share_of_teacher": round(float(learned.mean() / earned["teacher"].mean()), 4),
        "index_share_of_teacher": round(float(earned["index_head"].mean() / earned["teacher"].mean()), 4),
        "queries": len(learned),
    }
    first = parts[0]
    return result | _adding(first, rng) | _masking(first, rng) | _cost(first, table, rng)


def _adding(folds: list[Judged], rng: np.random.Generator) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for kind in folds[0].added:
        ratio = pooled_ratio([fold.added[kind] for fold in folds], rng)
        interval = [round(ratio.low, 3), round(ratio.high, 3)]
        if kind == "card":
            result |= {"add_by_card_ratio": round(ratio.value, 3), "value_without": round(ratio.without, 4)}
        elif kind == "100":
            result |= {
                "add_worker_ratio": round(ratio.value, 3),
                "add_worker_interval": interval,
                "harmful_draws": round(ratio.harmful, 3),
            }
        else:
            result[f"add_worker_ratio_{kind}"] = {
                "ratio": round(ratio.value, 3),
                "interval": interval,
                "harmful": round(ratio.harmful, 3),
            }
    return result


def _masking(folds: list[Judged], rng: np.random.Generator) -> dict[str, Any]:
    if not folds[0].masked:
        return {"mask_regret": None}
    worst, index = _worst([fold.masked for fold in folds], rng), _worst([fold.index_masked for fold in folds], rng)
    return {
        "mask_regret": round(worst.estimate, 4),
        "mask_regret_interval": two_sided(worst),
        "index_mask_regret": round(index.estimate, 4),
        "index_mask_regret_interval": two_sided(index),
    }


def _worst(folds: list[list[tuple[Any, Any]]], rng: np.random.Generator) -> Interval:
    """The largest loss of masking a worker against refitting without it, over workers."""
    found = []
    for pairs in zip(*folds, strict=True):
        masked, refit = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
        found.append(paired_bootstrap(refit, masked, rng))
    return max(found, key=lambda interval: interval.estimate)


def _cost(folds: list[Judged], table: RewardTable, rng: np.random.Generator) -> dict[str, Any]:
    """The mix's cost as a share of the best single worker's, by price per token."""
    if folds[0].mix is None:
        return {"matched_quality_cost": None}
    mixes = [fold.mix for fold in folds if fold.mix is not None]
    earned, paid = np.concatenate([m.earned for m in mixes]), np.concatenate([m.paid for m in mixes])
    single = np.concatenate([fold.earned["best_single"] for fold in folds])
    best = int(np.nanmean(table.rewards, axis=0).argmax())
    price = table.arms[best].price or 1.0
    return {
        "matched_quality_cost": round(float(paid.mean() / price), 3),
        "matched_quality_difference": round(float((earned - single).mean()), 4),
        "matched_quality_interval": two_sided(paired_bootstrap(earned, single, rng)),
    }


if __name__ == "__main__":
    main()
