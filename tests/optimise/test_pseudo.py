"""Pseudo-outcomes: right on average for workers that were seldom asked, and refused where there is too little."""

from __future__ import annotations

import numpy as np
import pytest

from harness.optimise.pseudo import pseudo_outcomes
from pointsman.errors import UserError
from pointsman.statistics.off_policy import LoggedChoices


def test_their_means_are_the_workers_true_means():
    rng = np.random.default_rng(3)
    n, truth = 1_500, np.array([0.8, 0.5, 0.3])
    probabilities = np.tile([0.8, 0.1, 0.1], (n, 1))
    actions = rng.choice(3, size=n, p=probabilities[0])
    rewards = (rng.random(n) < truth[actions]).astype(float)
    texts = [f"request number {index % 50} about topic{index % 7}" for index in range(n)]
    made = pseudo_outcomes(texts, LoggedChoices(probabilities, actions, rewards), rng)
    assert made.shape == (n, 3)
    assert made.mean(axis=0) == pytest.approx(truth, abs=0.1)
    assert made.max() > 1.0


def test_a_handful_of_decisions_is_refused():
    log = LoggedChoices(np.full((5, 2), 0.5), np.zeros(5, dtype=int), np.ones(5))
    with pytest.raises(UserError, match="5 logged decisions with a reward are too few: at least 50"):
        pseudo_outcomes(["x"] * 5, log, np.random.default_rng(1))
