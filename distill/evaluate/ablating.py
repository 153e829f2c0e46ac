"""What a router does when its pool is another: a worker masked, gone, added, renamed, or at a new endpoint version.

`Refit` fits the same kind of router on a label set and gives its scores on the judged rows; that is how a worker's
absence in training is compared with its absence in serving.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from distill.arrays import Floats
from distill.evaluate.comparing import Exam
from distill.evaluate.values import picks, realised, two_sided
from distill.labels.store import LabelSet

Refit = Callable[[LabelSet], Floats]
"""From a label set to scores [m, arms of that set] on the judged rows."""


def mask_and_drop(exam: Exam, scores: Floats, labels: LabelSet, refit: Refit) -> list[dict[str, Any]]:
    """A line for each worker: the served router with it masked, and a router that never knew it.

    `mask_regret` is what masking loses against refitting; `dropped` what the worker's being there is worth. A worker at
    a new endpoint version is unknown to the router, so `version_bump` is the masked value until it is learned anew.
    """
    full = realised(exam.rewards, refit(labels))
    lines: list[dict[str, Any]] = []
    for number, arm in enumerate(labels.arms):
        others = np.arange(len(labels.arms)) != number
        masked = realised(exam.rewards, scores, others)
        rest = realised(exam.rewards[:, others], refit(labels.without(arm.endpoint)))
        regret, worth = exam.difference(rest, masked), exam.difference(full, rest)
        lines.append(
            {
                "worker": arm.worker,
                "masked": round(float(masked.mean()), 4),
                "refitted_without": round(float(rest.mean()), 4),
                "mask_regret": round(regret.estimate, 4),
                "mask_regret_interval": two_sided(regret),
                "dropped": round(worth.estimate, 4),
                "dropped_interval": two_sided(worth),
                "version_bump": round(float(masked.mean()), 4),
            }
        )
    return lines


def renamed(scores_of: Callable[[Sequence[str]], Floats], endpoints: Sequence[str], rng: np.random.Generator) -> float:
    """The share of judged rows whose worker changes when workers are renamed and come in another order: must be 0.

    `scores_of(endpoints)` gives scores with columns in that order. Rows whose best score is shared are left out.
    """
    straight = scores_of(endpoints)
    order = rng.permutation(len(endpoints))
    turned = scores_of([endpoints[number] for number in order])
    clear = (straight == straight.max(axis=1, keepdims=True)).sum(axis=1) == 1
    return float((picks(straight)[clear] != order[picks(turned)[clear]]).mean()) if clear.any() else 0.0


def adding(
    labels: LabelSet, exam: Exam, rows: Sequence[int], probes: int, seed: int, cards: Floats, points: Floats
) -> dict[str, Any]:
    """A worker added without retraining: by its card alone, and by its card and `probes` paired probes.

    On a mixture of latent types over `points` [set's rows, d]; ratios of what retraining with the worker brings.
    """
    from distill.classic.choosing import estimates
    from distill.evaluate.adding import MixtureFold, add_by_card, add_by_probes, pooled_ratio
    from distill.router_model.distilling import card_mixture

    training = labels.of("train", "validation")
    table = estimates(labels)
    mixture = card_mixture(points[training], table.rows(training), seed)
    observed = labels.rewards[training]
    known = np.isfinite(observed).all(axis=1)
    some = training[known] if known.sum() >= 2 * probes else training
    answers = observed[known] if known.sum() >= 2 * probes else table.rewards[training]
    fold = MixtureFold(
        shares=mixture.posterior.shares(points[np.asarray(rows)]),
        values=mixture.values,
        rewards=exam.rewards,
        types=mixture.posterior.shares(points[some]).argmax(axis=1),
        training=answers,
        cards=cards,
    )
    rng = np.random.default_rng([seed, 13])
    found: dict[str, Any] = {}
    for name, added in (("card", add_by_card(fold)), ("probes", add_by_probes(fold, probes, 6, seed))):
        ratio = pooled_ratio([added], rng, resamples=500)
        found[name] = {
            "ratio": round(ratio.value, 4),
            "interval": [round(ratio.low, 4), round(ratio.high, 4)],
            "harmful": round(ratio.harmful, 4),
            "value_without": round(ratio.without, 4),
        }
    return {**found, "probes_each": probes}


def worst_regret(lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The worker whose masking loses most."""
    worst = max(lines, key=lambda line: float(line["mask_regret"]))
    return {name: worst[name] for name in ("worker", "mask_regret", "mask_regret_interval")}
