"""Cost against quality: what a router earns and costs when price counts more and more, and the cheapest mix that is
no more than a margin below the best single worker, its weight chosen on other rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from distill.arrays import Floats
from distill.evaluate.mixes import cheapest_mix, price_weights
from distill.evaluate.values import picks, realised, two_sided
from pointsman.statistics.episodes import paired_bootstrap


@dataclass(frozen=True, eq=False)
class Curve:
    """`points` are (price weight, value, price paid), price in USD per million tokens, input and output together."""

    points: list[tuple[float, float, float]]
    matched: dict[str, Any]


def cost_curve(
    chosen_scores: Floats, chosen_rewards: Floats, scores: Floats, rewards: Floats, prices: Floats, seed: int
) -> Curve:
    """`chosen_*` are validation rows, the others judged rows; scores are in the unit of rewards."""
    points = []
    for weight in price_weights(scores, prices).tolist():
        decided = scores - weight * prices
        points.append((weight, float(realised(rewards, decided).mean()), float(prices[picks(decided)].mean())))
    mix = cheapest_mix(chosen_scores, chosen_rewards, scores, rewards, prices, seed=seed)
    single = int(np.nanmean(chosen_rewards, axis=0).argmax())
    against = paired_bootstrap(mix.earned, rewards[:, single], np.random.default_rng([seed, 5]))
    matched = {
        "price_weight": mix.weight,
        "value_difference": round(against.estimate, 4),
        "value_difference_interval": two_sided(against),
        "price": round(float(mix.paid.mean()), 6),
        "best_single_price": round(float(prices[single]), 6),
        "price_share": round(float(mix.paid.mean() / prices[single]), 4) if prices[single] > 0 else None,
    }
    return Curve(points, matched)
