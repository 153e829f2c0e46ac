"""What a step of GRPO earned: plans carried out, groups that teach nothing dropped and counted, budgets kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from distill.conductor.generating import MAX_NEW
from distill.conductor.rollouts import Item, Rolled, Scene
from distill.conductor.tuning import Tuning
from harness.routing.base import RouterUsage
from pointsman.errors import UserError

NO_SIGNAL = "no_signal"
_FLAT = 1e-9


@dataclass(frozen=True)
class ConductorGrpo:
    """`groups` × `generations` rollouts a step; `patience`: steps in a row without a group that teaches.

    `max_calls` (of rollouts) and `max_usd` end the training when they are used up; 0 is no limit.
    """

    steps: int = 60
    groups: int = 4
    generations: int = 16
    learning_rate: float = 2e-4
    temperature: float = 1.0
    epsilon: float = 0.2
    beta: float = 0.0
    max_new: int = MAX_NEW
    look_every: int = 10
    patience: int = 8
    tuning: Tuning = "full"
    rank: int = 16
    max_calls: int = 0
    max_usd: float = 0.0
    seed: int = 1

    def __post_init__(self) -> None:
        if self.groups < 1 or self.generations < 2 or self.steps < 1 or self.look_every < 1:
            raise UserError("grpo: expected 1 group or more, 2 generations or more, 1 step or more")


@dataclass
class Tally:
    """What rollouts added up to. `live` groups taught; `flat_run`: steps in a row without one."""

    rollouts: int = 0
    usd: float = 0.0
    unparsed: int = 0
    live: int = 0
    zero_spread: int = 0
    unknown: int = 0
    flat_run: int = 0
    stopped: str | None = None


class RolloutReward:
    """TRL's reward function: carries a step's plans out and keeps account. The parts of rewards are logged apart."""

    __name__ = "rollout"

    def __init__(
        self,
        scene: Scene,
        items: Sequence[Item],
        tally: Tally,
        config: ConductorGrpo,
        spend: Callable[[float], None] = lambda usd: None,
    ) -> None:
        self.scene = scene
        self.items = items
        self.tally = tally
        self.config = config
        self._spend = spend
        self.parts: list[dict[str, float]] = []
        self.right: list[tuple[Item, str, str, Rolled]] = []

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Sequence[int]],
        item: Sequence[int],
        tokens: Sequence[int],
        **others: Any,
    ) -> list[float | None]:
        texts = [one if isinstance(one, str) else one[0]["content"] for one in completions]
        pairs = [
            (self.items[number], text, RouterUsage(asked, len(ids)))
            for number, text, asked, ids in zip(item, texts, tokens, completion_ids, strict=True)
        ]
        rolled = self.scene.roll(pairs)
        self.right += [
            (pair[0], pair[1], "grpo", one)
            for pair, one in zip(pairs, rolled, strict=True)
            if one.earned.outcome >= 0.5
        ]
        self._count(rolled)
        size = self.config.generations
        groups = [rolled[start : start + size] for start in range(0, len(rolled), size)]
        rewards: list[float | None] = [reward for group in groups for reward in self._rewards(group)]
        self._end_of_step(any(spread(group) == "live" for group in groups))
        return rewards

    def _count(self, rolled: Sequence[Rolled]) -> None:
        self.tally.rollouts += len(rolled)
        usd = sum(one.cost for one in rolled)
        self.tally.usd += usd
        self._spend(usd)
        self.tally.unparsed += sum(not one.parsed for one in rolled)
        known = [one.earned for one in rolled if one.earned.known]
        if known:
            names = ("outcome", "form", "price")
            self.parts.append({name: sum(getattr(one, name) for one in known) / len(known) for name in names})

    def _rewards(self, group: Sequence[Rolled]) -> list[float]:
        """A dropped group's rewards are all 0: no advantage, whatever the trainer divides by."""
        kind = spread(group)
        self.tally.live += kind == "live"
        self.tally.zero_spread += kind == "zero_spread"
        self.tally.unknown += kind == "unknown"
        return [one.earned.total for one in group] if kind == "live" else [0.0] * len(group)

    def _end_of_step(self, live: bool) -> None:
        self.tally.flat_run = 0 if live else self.tally.flat_run + 1
        if self.tally.flat_run >= self.config.patience:
            self.tally.stopped = NO_SIGNAL
        elif 0 < self.config.max_calls <= self.tally.rollouts or 0 < self.config.max_usd <= self.tally.usd:
            self.tally.stopped = "budget"


def spread(group: Sequence[Rolled]) -> str:
    """`live`, `zero_spread` or `unknown`: whether a group's rewards differ, and are all known."""
    totals = [one.earned.total for one in group]
    if not all(math.isfinite(total) for total in totals):
        return "unknown"
    return "live" if max(totals) - min(totals) > _FLAT else "zero_spread"


def contested(tried: Mapping[str, Sequence[float]]) -> list[str]:
    """Of item id → outcomes of the plans that were tried: those with right and wrong ones, the most even first."""
    shares = {name: sum(outcomes) / len(outcomes) for name, outcomes in tried.items() if outcomes}
    mixed = [name for name, share in shares.items() if 0 < share < 1]
    return sorted(mixed, key=lambda name: (abs(shares[name] - 0.5), name))
