"""The value of a router from the log of another: IPS, SNIPS, DM, doubly robust (DR), paired DR, SWITCH.

With logged probabilities p, action A, reward R, a target policy π, weights w = π(A|X)/p(A|X) and a reward model
q̂ [n, K] that has not seen its own row (`ridge.cross_fitted`):

    IPS    mean(wR)                                            (Horvitz & Thompson 1952)
    SNIPS  Σ wR / Σ w                                          (Swaminathan & Joachims 2015)
    DM     mean Σ_a π(a) q̂(a)
    DR     φ = Σ_a π(a) q̂(a) + w (R − q̂(A))                    (Dudík et al., arXiv 1103.4601, eq. 2)
    paired D = Σ_a (π − π₀)(a) q̂(a) + (π − π₀)(A)/p(A) · (R − q̂(A))
    SWITCH DR where w ≤ τ, DM elsewhere                        (Wang et al., arXiv 1612.01205, eq. 8)

For a decision take DR or paired DR: their intervals hold whatever q̂ is. SNIPS is a sanity line. DM and SWITCH
are biased by q̂, their intervals are not honest (on one log DM's nominal 95% covered 16%), so they return numbers to
rank candidates by and nothing else.

Assumes: the logged p are those that were drawn from, rewards in [0, 1], R depends on the row's own action alone,
forced decisions (p = 1) left out. Intervals are normal over episodes, for one look at a fixed log; `anytime_dr` is
the one that may be watched. `require_overlap` and `require_sample` refuse what cannot be evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pointsman.errors import UserError
from pointsman.statistics.arrays import Floats, Integers, Interval, normal_interval, normal_quantile, within
from pointsman.statistics.episodes import Episodes, episode_means
from pointsman.statistics.overlap import require_overlap, require_sample


@dataclass(frozen=True)
class LoggedChoices:
    """`probabilities` [n, K] as drawn from (0 for ineligible workers), `actions` [n], `rewards` [n] in [0, 1].

    `episodes` names each row's episode, the unit of every interval; None makes every row its own.
    """

    probabilities: Floats
    actions: Integers
    rewards: Floats
    episodes: Episodes | None = None

    def __post_init__(self) -> None:
        distributions(self.probabilities, "logged probabilities")
        within(self.rewards, 0, 1, "rewards")
        if not len(self.probabilities) == len(self.actions) == len(self.rewards):
            raise UserError("log: expected one probability vector, action and reward per row")
        if len(self.actions) and not (self.taken(self.probabilities) > 0).all():
            raise UserError("log: a logged action has probability 0: these are not the probabilities it was drawn from")

    def taken(self, table: Floats) -> Floats:
        """The entry of every row's action."""
        return np.take_along_axis(table, self.actions[:, None], axis=1)[:, 0]

    def weights(self, target: Floats) -> Floats:
        """w of every row."""
        return self.taken(target) / self.taken(self.probabilities)


def distributions(table: ArrayLike, what: str) -> Floats:
    """[n, K] rows that are probabilities and sum to 1."""
    array = within(table, 0, 1, what)
    if array.ndim != 2 or not np.allclose(array.sum(axis=1), 1, atol=1e-6):
        raise UserError(f"{what}: expected rows over workers that sum to 1")
    return array


def deterministic(choices: ArrayLike, workers: int) -> Floats:
    """The policy [n, K] that always makes these choices."""
    return np.eye(workers)[np.asarray(choices, dtype=np.int64)]


def ips(log: LoggedChoices, target: Floats, alpha: float = 0.05) -> Interval:
    """Inverse propensity scoring: unbiased, of high variance."""
    weights = _weights(log, target)
    return normal_interval(episode_means(weights * log.rewards, log.episodes), alpha, "IPS")


def snips(log: LoggedChoices, target: Floats, alpha: float = 0.05) -> Interval:
    """Self-normalised IPS with the delta method's interval; its undercoverage at small samples is known (.73–.95)."""
    weights = episode_means(_weights(log, target), log.episodes)
    earned = episode_means(log.weights(target) * log.rewards, log.episodes)
    value = float(earned.sum() / weights.sum())
    influence = (earned - value * weights) / weights.mean()
    half = normal_quantile(1 - alpha / 2) * float(influence.std(ddof=1)) / len(influence) ** 0.5
    return Interval(value, value - half, value + half, len(influence), alpha, "SNIPS")


def dm_value(target: Floats, q: Floats) -> float:
    """The direct method: what the reward model believes. To rank candidates, never to decide."""
    return float((target * q).sum(axis=1).mean())


def dr_values(log: LoggedChoices, target: Floats, q: Floats) -> Floats:
    """φ of every row: unbiased for the value of `target` whatever q̂ is."""
    values: Floats = (target * q).sum(axis=1) + log.weights(target) * (log.rewards - log.taken(q))
    return values


def dr(log: LoggedChoices, target: Floats, q: Floats, alpha: float = 0.05) -> Interval:
    """The doubly robust value of `target`."""
    _weights(log, target)
    return normal_interval(episode_means(dr_values(log, target, q), log.episodes), alpha, "DR")


def dr_difference(log: LoggedChoices, target: Floats, incumbent: Floats, q: Floats, alpha: float = 0.05) -> Interval:
    """Value of `target` minus that of `incumbent`, paired row by row; only rows where they differ carry weight."""
    difference = distributions(target, "target policy") - distributions(incumbent, "incumbent policy")
    require_overlap(difference, log.probabilities)
    require_sample(log.weights(difference))
    return normal_interval(episode_means(dr_values(log, difference, q), log.episodes), alpha, "paired DR")


def switch_value(log: LoggedChoices, target: Floats, q: Floats, threshold: float = 10.0) -> float:
    """SWITCH: weights up to `threshold`, the reward model where they would be larger. To rank candidates only."""
    ratios = np.divide(target, log.probabilities, out=np.full_like(target, np.inf), where=log.probabilities > 0)
    trusted = ratios <= threshold
    corrections = np.where(
        log.taken(trusted.astype(float)) > 0, log.weights(target) * (log.rewards - log.taken(q)), 0.0
    )
    return float(((target * q).sum(axis=1) + corrections).mean())


def _weights(log: LoggedChoices, target: Floats) -> Floats:
    distributions(target, "target policy")
    require_overlap(target, log.probabilities)
    weights = log.weights(target)
    require_sample(weights)
    return weights
