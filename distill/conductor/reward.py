"""What a rollout earned: outcome, a bounded bonus for form, a bounded price. The parts are kept apart in every log.

    reward = outcome + form - price,  0 where the text is no plan

Conductor's authors add .5 for form to an outcome of 0 or 1 (their code); the bonus here is small, since one that is
paid for any plan at all is earned without answering anything. `price` is `cost_weight` × cost ÷ (cost + `cost_scale`):
between 0 and `cost_weight`, so that no saving is worth a wrong answer while `cost_weight` + `form_bonus` is below 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pointsman.errors import UserError


@dataclass(frozen=True)
class RewardConfig:
    """`cost_scale` is in USD: a request of that cost pays half of `cost_weight`."""

    form_bonus: float = 0.05
    cost_weight: float = 0.1
    cost_scale: float = 0.0005

    def __post_init__(self) -> None:
        if not (self.form_bonus >= 0 and self.cost_weight >= 0 and self.cost_scale > 0):
            raise UserError("reward: expected form_bonus and cost_weight of 0 or more, cost_scale above 0")
        if self.form_bonus + self.cost_weight >= 1:
            raise UserError("reward: form_bonus + cost_weight: expected less than 1, so that an answer is worth most")


@dataclass(frozen=True)
class Earned:
    """The parts of one rollout's reward. `outcome` in [0, 1], NaN where nobody could say (a fault on our side)."""

    outcome: float
    form: float
    price: float

    @property
    def total(self) -> float:
        return self.outcome + self.form - self.price

    @property
    def known(self) -> bool:
        return math.isfinite(self.total)


UNPARSED = Earned(0.0, 0.0, 0.0)


def earned(outcome: float, cost: float, config: RewardConfig) -> Earned:
    """Of a plan that was carried out. `cost` in USD, of workers and orchestration."""
    price = config.cost_weight * cost / (cost + config.cost_scale) if cost > 0 else 0.0
    return Earned(outcome, config.form_bonus, price)
