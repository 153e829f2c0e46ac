"""Krippendorff's α for nominal words: how far reviewers agree beyond what chance would give.

K. Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), section C: with the coincidences
o_ck = Σ_u (pairs c-k in u) / (m_u − 1), n_c = Σ_k o_ck and n = Σ_c n_c,

    α = 1 − (n − 1) · (n − Σ_c o_cc) / (n² − Σ_c n_c²)

Any number of reviewers, and units that only some of them judged; units with one word say nothing. 1: they agree
always; 0: as chance would; below: less than that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Agreement:
    """`alpha` is None where nothing can vary: no unit with two words, or one word alone. `words` were pairable."""

    alpha: float | None
    units: int
    words: int


def krippendorff(units: Sequence[Sequence[Hashable]]) -> Agreement:
    """`units`: per item the words that were given."""
    pairable = [Counter(unit) for unit in units if len(unit) > 1]
    totals: Counter[Hashable] = Counter()
    same = 0.0
    for unit in pairable:
        size = unit.total()
        totals.update(unit)
        same += sum(count * (count - 1) for count in unit.values()) / (size - 1)
    n = totals.total()
    spread = n * n - sum(count * count for count in totals.values())
    if spread == 0:
        return Agreement(None, len(pairable), n)
    return Agreement(1 - (n - 1) * (n - same) / spread, len(pairable), n)
