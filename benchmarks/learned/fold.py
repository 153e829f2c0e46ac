"""One outer fold: everything is fitted and chosen on its training rows, and judged on the others once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch

from distill.arrays import Floats, Integers
from distill.classic.heads import Mixture, fit_mixture
from distill.classic.means import shrunk_means
from distill.classic.teacher import TeacherConfig
from distill.evaluate.adding import Added, MixtureFold, add_by_card, add_by_probes
from distill.evaluate.folds import stratified_split
from distill.evaluate.mixes import Mix, cheapest_mix
from distill.evaluate.values import best_single, oracle, realised
from distill.features.extras import Extras
from distill.mathematics import one_hot
from distill.router_model.distilling import DistilConfig, card_head, card_mixture, distil, types_of
from distill.router_model.heads import Head
from distill.sft.loop import SftConfig
from distill.table import RewardTable

PROBES = (25, 100, 400)
CLASSIFIER_C = (1.0, 3.0, 10.0)


@dataclass(frozen=True)
class Options:
    """How much of the benchmark is run."""

    trees: int = 200
    draws: int = 6
    masks: bool = True
    adding: bool = True
    seed: int = 1
    probes: tuple[int, ...] = PROBES


@dataclass(eq=False)
class Judged:
    """Rewards per judged row of `rows`, by router; and what the ablations gave."""

    rows: Integers
    earned: dict[str, Floats]
    masked: list[tuple[Floats, Floats]] = field(default_factory=list)
    index_masked: list[tuple[Floats, Floats]] = field(default_factory=list)
    added: dict[str, Added] = field(default_factory=dict)
    mix: Mix | None = None
    notes: dict[str, float] = field(default_factory=dict)


def judge(
    table: RewardTable,
    states: Floats,
    cards: Floats,
    training: Integers,
    other: Integers,
    options: Options,
) -> Judged:
    """`states` [n, d] of all requests, already scaled; `cards` [k, e] unit embeddings."""
    seed = options.seed
    taught = table.rows(training)
    extras = Extras.fit(taught.texts, seed)
    extra = extras.rows(table.texts)
    rewards = table.rewards[other]
    config = DistilConfig(TeacherConfig(trees=options.trees))
    fitted = distil(states[training], extra[training], taught, seed, SftConfig(), config)
    rows = np.hstack([states, extra]).astype(np.float32)
    mixture = card_mixture(rows[training], taught, seed)
    scores = head_scores(card_head(mixture, table.endpoints, config.temperature), rows[other], config)
    index_scores = head_scores(fitted.head, rows[other], config)
    judged = Judged(
        other,
        {
            "best_single": best_single(taught.rewards, rewards),
            "known_task": realised(rewards, _known_task(table, taught, other)),
            "task_classifier": realised(rewards, task_classifier(states, table, training, other, seed)),
            "teacher": realised(rewards, fitted.teacher.scores(states[other], extra[other])),
            "learned": realised(rewards, scores),
            "index_head": realised(rewards, index_scores),
            "oracle": oracle(rewards),
        },
        notes={"trees": fitted.teacher.blend, "epoch": fitted.sft.best},
    )
    prices = [arm.price for arm in table.arms]
    if all(price is not None for price in prices):
        paid = np.array(prices, np.float64)
        judged.mix = cheapest_mix(fitted.teacher.first_training, taught.rewards, scores, rewards, paid, seed=seed)
    if options.adding:
        judged.added = _adding(mixture, rows, table, cards, training, other, options)
    if options.masks:
        judged.masked = _card_masks(scores, rows, table, training, other, seed)
        judged.index_masked = _index_masks(index_scores, rows, states.shape[1], table, training, other, config, seed)
    return judged


def head_scores(head: Head, rows: Floats, config: DistilConfig) -> Floats:
    """A head's logits on the scale of rewards, [n, k]."""
    with torch.inference_mode():
        found: Floats = head(torch.as_tensor(rows, dtype=torch.float32)).numpy() * config.temperature
    return found


def task_classifier(states: Floats, table: RewardTable, training: Integers, other: Integers, seed: int) -> Floats:
    """D0: sentence embedding → logistic task classifier → probability-weighted means; c chosen on a held-out part."""
    taught = table.rows(training)
    names, numbers = types_of(states[training], taught, seed, 24)
    inner, held = stratified_split(numbers, 0.2, seed)

    def fit(rows: Integers, c: float) -> Mixture:
        return fit_mixture(states[training][rows], taught.rewards[rows], numbers[rows], names, c=c)

    def held_value(c: float) -> float:
        return float(np.nanmean(realised(taught.rewards[held], fit(inner, c).scores(states[training][held]))))

    best = max(CLASSIFIER_C, key=held_value)
    return fit(np.arange(len(training)), best).scores(states[other])


def _known_task(table: RewardTable, taught: RewardTable, other: Integers) -> Floats:
    """Means of the true task: a ceiling for task recognition, not a router."""
    names, numbers = table.task_numbers()
    if not names:
        return np.tile(np.nanmean(taught.rewards, axis=0), (len(other), 1))
    place = {name: number for number, name in enumerate(names)}
    mine = np.array([place[task] if task is not None else -1 for task in taught.tasks])
    return one_hot(numbers[other], len(names)) @ shrunk_means(one_hot(mine, len(names)), taught.rewards)


def _adding(
    mixture: Mixture,
    rows: Floats,
    table: RewardTable,
    cards: Floats,
    training: Integers,
    other: Integers,
    options: Options,
) -> dict[str, Added]:
    shares = mixture.posterior.shares(rows[other])
    types = mixture.posterior.shares(rows[training]).argmax(axis=1)
    fold = MixtureFold(shares, mixture.values, table.rewards[other], types, table.rewards[training], cards)
    found = {"card": add_by_card(fold)}
    for count in options.probes:
        found[str(count)] = add_by_probes(fold, count, options.draws, options.seed)
    return found


def _card_masks(
    scores: Floats, rows: Floats, table: RewardTable, training: Integers, other: Integers, seed: int
) -> list[tuple[Floats, Floats]]:
    """Per worker: (rewards with it masked in the served router, rewards of a router fitted without it)."""
    pairs = []
    for number, endpoint in enumerate(table.endpoints):
        rest = table.without(endpoint)
        refit = card_mixture(rows[training], rest.rows(training), seed).scores(rows[other])
        pairs.append((_masked(table, scores, other, number), realised(rest.rewards[other], refit)))
    return pairs


def _index_masks(
    scores: Floats,
    rows: Floats,
    width: int,
    table: RewardTable,
    training: Integers,
    other: Integers,
    config: DistilConfig,
    seed: int,
) -> list[tuple[Floats, Floats]]:
    """The same of the index head: teacher and student are fitted anew without the worker."""
    pairs = []
    for number, endpoint in enumerate(table.endpoints):
        rest = table.without(endpoint)
        taught = rest.rows(training)
        refit = distil(rows[training, :width], rows[training, width:], taught, seed, SftConfig(), config)
        kept = realised(rest.rewards[other], head_scores(refit.head, rows[other], config))
        pairs.append((_masked(table, scores, other, number), kept))
    return pairs


def _masked(table: RewardTable, scores: Floats, other: Integers, number: int) -> Floats:
    return realised(table.rewards[other], scores, np.arange(len(table.arms)) != number)
