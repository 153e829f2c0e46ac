"""The single-turn head by a direct policy gradient in torch, for comparison: one action, no text, no trainer.

    reinforce   -(r - b) log π(a|x), b the batch's mean (Williams 1992)
    grpo        a group of actions of each request; (r - mean) ÷ (sd + 1e-4), ratio clipped at 1 ± ε (2402.03300)

Trinity's authors report REINFORCE as far worse than evolution; their earlier code adds .35 × entropy to a reward of 0
or 1, which alone holds a policy of ten actions near uniform. Here that weight is a setting, 0 unless it is tuned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from distill.arrays import Floats
from pointsman.errors import UserError

if TYPE_CHECKING:
    import torch

Method = Literal["reinforce", "grpo"]


@dataclass(frozen=True)
class HeadGradient:
    """`draws` is the budget: rewards looked up in all. `group` actions of each request (GRPO)."""

    method: Method = "grpo"
    draws: int = 20_000
    batch: int = 256
    group: int = 8
    learning_rate: float = 0.02
    epsilon: float = 0.2
    passes: int = 2
    entropy: float = 0.0
    seed: int = 1


def climb(states: Floats, rewards: Floats, start: Floats, config: HeadGradient) -> Floats:
    """A flat head [k · d] after `config.draws` draws from `rewards` [n, k] at `states` [n, d], from `start`."""
    import torch

    if np.isnan(rewards).any():
        raise UserError("a policy gradient on replay needs a reward of every worker for every request")
    generator = torch.Generator().manual_seed(config.seed)
    table = torch.as_tensor(rewards, dtype=torch.float32)
    x = torch.as_tensor(states, dtype=torch.float32)
    head = torch.nn.Parameter(torch.as_tensor(start.reshape(rewards.shape[1], -1), dtype=torch.float32).clone())
    optimiser = torch.optim.Adam([head], lr=config.learning_rate)
    group = config.group if config.method == "grpo" else 1
    asked = max(1, config.batch // group)
    for _ in range(config.draws // (asked * group)):
        rows = torch.randint(len(x), (asked,), generator=generator)
        with torch.no_grad():
            old = torch.log_softmax(x[rows] @ head.T, 1)
            actions = torch.multinomial(old.exp(), group, replacement=True, generator=generator)
            earned = table[rows].gather(1, actions)
            gain = _advantage(earned, config.method)
        for _ in range(config.passes if config.method == "grpo" else 1):
            logs = torch.log_softmax(x[rows] @ head.T, 1)
            ratio = (logs.gather(1, actions) - old.gather(1, actions)).exp()
            bounded = ratio.clamp(1 - config.epsilon, 1 + config.epsilon) if config.method == "grpo" else ratio
            loss = -torch.minimum(ratio * gain, bounded * gain).mean()
            loss = loss + config.entropy * (logs.exp() * logs).sum(1).mean()
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    flat: Floats = head.detach().numpy().astype(np.float64).ravel()
    return flat


def _advantage(earned: torch.Tensor, method: Method) -> torch.Tensor:
    if method == "reinforce":
        return earned - earned.mean()
    return (earned - earned.mean(1, keepdim=True)) / (earned.std(1, keepdim=True) + 1e-4)
