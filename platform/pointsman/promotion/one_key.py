"""Does a gate's verdict rest on one key? The same rows again, once without each of the busiest keys.

Whoever holds a key can ask whatever makes two routers disagree and praise one of them. So a candidate is let in
only where the evidence reaches 1/α without any one key that is behind less than half of the rows; a key that is
behind more *is* the traffic. It can only keep a candidate out, so the error of letting one in stays below α.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from math import log

import numpy as np

from pointsman.statistics.arrays import Booleans, Floats
from pointsman.statistics.gate import Row, Terms
from pointsman.statistics.promotion import Evidence, Margins, predicted, step

BUSIEST = 20
"""Keys that are looked at; one behind fewer rows than twenty others carries little."""
LEAST_ROWS = 3


def rests_on(terms: Terms, rows: Sequence[Row], keys: Sequence[Sequence[str]]) -> list[str]:
    """The keys without whose rows the evidence never reached 1/α, busiest first; `keys` are those behind each row."""
    counts = Counter(key for several in keys for key in set(several))
    suspects = [key for key, n in counts.most_common(BUSIEST) if LEAST_ROWS <= n < len(rows) / 2]
    if not suspects:
        return []
    most = _highest(terms, rows, [np.array([key not in several for key in suspects]) for several in keys])
    return [key for key, reached in zip(suspects, most, strict=True) if reached < -log(terms.alpha)]


def _highest(terms: Terms, rows: Sequence[Row], counts: Sequence[Booleans]) -> Floats:
    """The highest ln E of every lane; lane k takes the rows where `counts` says so."""
    lanes = len(counts[0])
    evidence, highest = Evidence.none(lanes), np.zeros(lanes)
    margins = Margins(terms.epsilon, terms.epsilon_rollback)
    for row, takes in zip(rows, counts, strict=True):
        rho = np.full(lanes, row.rho)
        after = step(
            evidence, margins, rho, np.full(lanes, row.candidate), np.full(lanes, row.utility), predicted(evidence, rho)
        )
        evidence = _where(takes, after, evidence)
        highest = np.maximum(highest, evidence.log_e)
    return highest


def _where(takes: Booleans, after: Evidence, before: Evidence) -> Evidence:
    chosen = {f.name: np.where(takes, getattr(after, f.name), getattr(before, f.name)) for f in fields(Evidence)}
    return replace(before, **chosen)
