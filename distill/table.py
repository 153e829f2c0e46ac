"""The reward table: requests against arms, what each arm earned where it was tried.

An arm is a worker at one endpoint version. Everything that is trained keys by the endpoint's hash: a
column's number means nothing outside its table, so that renaming, reordering, adding and retiring
workers cannot shift a label onto another worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from distill.arrays import Bools, Floats, Integers
from pointsman.errors import UserError


@dataclass(frozen=True)
class Arm:
    """A worker at one endpoint version; `worker` and `card` are for people and card-reading routers.

    `price` is USD per million tokens, input and output together, where known.
    """

    endpoint: str
    worker: str
    card: str = ""
    price: float | None = None


@dataclass(frozen=True, eq=False)
class RewardTable:
    """`rewards` [requests, arms] in [0, 1], NaN where an arm was not tried.

    `tasks` may be used in training, never at prediction; `splits` are the data's own words for its parts.
    """

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    arms: tuple[Arm, ...]
    rewards: Floats
    tasks: tuple[str | None, ...]
    splits: tuple[str | None, ...]

    def __post_init__(self) -> None:
        shape = (len(self.ids), len(self.arms))
        if self.rewards.shape != shape or len(self.texts) != shape[0] or len(self.tasks) != shape[0]:
            raise UserError(f"a reward table of {shape} needs as many texts, tasks and rewards: {self.rewards.shape}")
        if len({arm.endpoint for arm in self.arms}) != shape[1]:
            raise UserError("two arms of a reward table have the same endpoint version")
        seen = self.rewards[~np.isnan(self.rewards)]
        if seen.size and not (seen.min() >= 0 and seen.max() <= 1):
            raise UserError("rewards must be from 0 to 1, NaN where an arm was not tried")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def endpoints(self) -> tuple[str, ...]:
        return tuple(arm.endpoint for arm in self.arms)

    @property
    def full(self) -> Bools:
        """Which requests have a reward for every arm."""
        result: Bools = np.asarray(~np.isnan(self.rewards).any(axis=1))
        return result

    def rows(self, chosen: Integers | Bools) -> RewardTable:
        """The same arms, these requests, in the order given."""
        numbers: list[int] = (np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen).tolist()

        def pick(values: Sequence[str | None]) -> tuple[str | None, ...]:
            return tuple(values[number] for number in numbers)

        return RewardTable(
            ids=tuple(self.ids[n] for n in numbers),
            texts=tuple(self.texts[n] for n in numbers),
            arms=self.arms,
            rewards=self.rewards[numbers],
            tasks=pick(self.tasks),
            splits=pick(self.splits),
        )

    def with_arms(self, endpoints: Sequence[str]) -> RewardTable:
        """The same requests, these arms, in the order given."""
        place = {endpoint: number for number, endpoint in enumerate(self.endpoints)}
        unknown = [endpoint for endpoint in endpoints if endpoint not in place]
        if unknown:
            raise UserError(f"no such endpoint version in the reward table: {', '.join(unknown)}")
        numbers = [place[endpoint] for endpoint in endpoints]
        arms = tuple(self.arms[number] for number in numbers)
        return replace(self, arms=arms, rewards=self.rewards[:, numbers])

    def without(self, endpoint: str) -> RewardTable:
        """The same requests, all arms but one."""
        return self.with_arms([known for known in self.endpoints if known != endpoint])

    def task_numbers(self) -> tuple[tuple[str, ...], Integers]:
        """The names of the tasks and each request's; -1 where it has none."""
        names = tuple(sorted({task for task in self.tasks if task is not None}))
        place = {name: number for number, name in enumerate(names)}
        return names, np.array([-1 if task is None else place[task] for task in self.tasks], np.int64)
