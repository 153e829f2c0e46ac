"""Words of feedback on one decision: which of them stand at a moment, and what they say together."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pointsman.rewards.spec import RewardSpec


@dataclass(frozen=True)
class Word:
    """One feedback, given to the decision or to its whole episode. `amends` names the word that it replaces."""

    id: str
    metric: str
    value: Any
    source: str
    given_at: datetime
    rater: str | None = None
    key: str | None = None
    amends: str | None = None
    retracted: bool = False


def standing(words: Iterable[Word], at: datetime | None = None) -> list[Word]:
    """The words that stand at a moment (None: now): neither retractions, nor amended or retracted until then.

    One rater has one word on one metric, the last; so has one key that names no rater.
    """
    known = [word for word in words if at is None or word.given_at <= at]
    replaced = {word.amends for word in known if word.amends is not None}
    last: dict[tuple[Any, ...], Word] = {}
    for word in sorted(known, key=lambda word: (word.given_at, word.id)):
        if not word.retracted and word.id not in replaced:
            said_by = (word.rater, word.key) if word.rater or word.key else (word.id,)
            last[(word.metric, word.source, *said_by)] = word
    return list(last.values())


def opinion(words: Iterable[Word], spec: RewardSpec) -> float | None:
    """The weighted mean in [0, 1] of what standing words say under the spec; None where none of them counts."""
    total = weight = 0.0
    for word in words:
        share = spec.metrics.get(word.metric, 0.0) * spec.sources.get(word.source, 1.0)
        value = unit(word, spec)
        if share > 0 and value is not None:
            total += share * value
            weight += share
    return total / weight if weight else None


def unit(word: Word, spec: RewardSpec) -> float | None:
    """A word's value as 0 (worst) to 1 (best); None where it has none that the spec can read."""
    value = word.value
    if isinstance(value, bool):
        return float(value)
    if not isinstance(value, int | float) or not math.isfinite(value):
        return None
    worst, best = spec.ranges.get(word.metric, (0.0, 1.0))
    share = (value - worst) / (best - worst)
    if word.metric in spec.ranges:
        return min(max(share, 0.0), 1.0)
    return share if 0 <= share <= 1 else None
