"""What gradients make of the same episodes: a head per role, distilled from what workers earned in that role.

The baseline that evolution has to beat. `start` knows only what each worker earns alone: its labels are the same for
every role. `continued` plays on with chance workers in the places of its own and learns each role's labels from what
the episodes earned (policy iteration by Monte Carlo), as long as it is given.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from distill.arrays import Floats
from distill.classic.teacher import soft_labels
from distill.evolve.episodes import ROLES, EpisodeProblem, Play
from distill.router_model.heads import IndexHead
from distill.sft.loop import SftConfig, SftData, train
from distill.sft.states import CachedStates

RATES, TEMPERATURES = (0.01, 0.03, 0.1), (0.03, 0.1)
RIDGE = 3.0
MOST_ROUNDS = 200
"""After so many rounds every play of chance is known, and nothing new is played."""


@dataclass(frozen=True, eq=False)
class Distilled:
    """`point` [size] is a candidate of the problem, `value` its mean reward on validation episodes."""

    point: Floats
    value: float
    rate: float
    temperature: float
    rounds: int = 0


def start(problem: EpisodeProblem, validation: EpisodeProblem, alone: Floats, seed: int, epochs: int = 60) -> Distilled:
    """`alone` [n, arms] is what each worker earned on each training task by itself; the best of all settings."""
    values = _smoothed(problem.states, alone, np.ones(alone.shape))
    found = []
    for rate in RATES:
        for temperature in TEMPERATURES:
            head = _fit(problem.states, values, rate, temperature, seed, epochs)
            point = np.tile(head, (len(ROLES), 1, 1)).ravel()
            found.append(Distilled(point, float(validation.rewards(point).mean()), rate, temperature))
    return max(found, key=lambda one: one.value)


def continued(
    problem: EpisodeProblem,
    validation: EpisodeProblem,
    begun: Distilled,
    seed: int,
    *,
    seconds: float,
    episodes: int,
    epochs: int = 60,
) -> Distilled:
    """Goes on for `seconds` and until `episodes` were played, whichever is later; the best point by validation."""
    rng = np.random.default_rng([seed, 5])
    ends, best, point = time.monotonic() + seconds, begun, begun.point
    gathered: dict[Play, float] = {}
    first, rounds = problem.played, 0
    while time.monotonic() < ends or problem.played - first < episodes:
        rounds += 1
        plays = _explored(problem, point, rng)
        problem.play(plays)
        gathered |= {play: problem.known[play] for play in plays}
        weights = []
        for role in range(len(ROLES)):
            values = _role_values(problem, gathered, role)
            weights.append(_fit(problem.states, values, begun.rate, begun.temperature, seed + rounds, epochs))
        point = np.stack(weights).ravel()
        value = float(validation.rewards(point).mean())
        if value > best.value:
            best = Distilled(point, value, begun.rate, begun.temperature, rounds)
        if rounds >= MOST_ROUNDS:
            break
    return best


def _explored(problem: EpisodeProblem, point: Floats, rng: np.random.Generator, share: float = 0.5) -> list[Play]:
    """The point's own plays, in which each role's first worker is another one by chance."""
    plays = []
    for row, orders in problem.plays(point, np.arange(len(problem.states))):
        changed = []
        for order in orders:
            if rng.random() < share:
                first = order[int(rng.integers(len(order)))]
                order = (first, *(name for name in order if name != first))
            changed.append(order)
        plays.append((row, tuple(changed)))
    return plays


def _role_values(problem: EpisodeProblem, gathered: dict[Play, float], role: int) -> Floats:
    """What episodes earned with each worker first in a role, smoothed over tasks, [n, arms]."""
    place = {name: number for number, name in enumerate(problem.arms)}
    sums, counts = (np.zeros((len(problem.states), len(problem.arms))) for _ in range(2))
    for (row, orders), reward in gathered.items():
        column = place[orders[role][0]]
        sums[row, column] += reward
        counts[row, column] += 1
    means = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
    return _smoothed(problem.states, means, counts)


def _smoothed(states: Floats, values: Floats, counts: Floats) -> Floats:
    """Weighted ridge per arm: single draws of 0 and 1 teach luck."""
    result = np.empty(values.shape)
    for column in range(values.shape[1]):
        weights = counts[:, column]
        total = max(float(weights.sum()), 1e-9)
        mean = float((weights * values[:, column]).sum() / total)
        gram = (states * weights[:, None]).T @ states + RIDGE * np.eye(states.shape[1])
        result[:, column] = mean + states @ np.linalg.solve(gram, states.T @ (weights * (values[:, column] - mean)))
    return result


def _fit(states: Floats, values: Floats, rate: float, temperature: float, seed: int, epochs: int) -> Floats:
    """A linear head [d, arms] trained on soft labels; a fifth of the tasks stops it."""
    head = IndexHead(states.shape[1], [str(number) for number in range(values.shape[1])])
    order = np.random.default_rng(seed).permutation(len(states))
    held, training = order[: len(states) // 5], order[len(states) // 5 :]
    data = SftData(CachedStates(states), soft_labels(values, temperature), np.clip(values, 0, 1), training, held)
    train(head, data, SftConfig(learning_rate=rate, epochs=epochs, patience=20, seed=seed))
    weights: Floats = head.arms.detach().numpy().astype(np.float64).T
    return weights
