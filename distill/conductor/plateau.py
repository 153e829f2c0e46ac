"""When training has nothing more to give: the validation reward is flat over the last third of its curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LEAST_POINTS = 6


@dataclass(frozen=True)
class Point:
    """A look at the validation set after `step` steps."""

    step: int
    reward: float
    right: float
    parse_rate: float


def flat(curve: Sequence[Point], tolerance: float = 0.02) -> bool:
    """Whether no look of the last third is above the best before it by more than `tolerance`.

    At least two looks make a third: fewer than six points are never flat.
    """
    if len(curve) < LEAST_POINTS:
        return False
    cut = len(curve) - len(curve) // 3
    return max(point.reward for point in curve[cut:]) <= max(point.reward for point in curve[:cut]) + tolerance


def best(curve: Sequence[Point]) -> Point:
    """The earliest of the best."""
    return max(curve, key=lambda point: (point.reward, -point.step))
