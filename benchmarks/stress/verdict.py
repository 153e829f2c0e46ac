"""How large a scenario is run, and how its figures are held against their limits."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.stress.oracle import FAULTS, Match


@dataclass(frozen=True)
class Size:
    """How large a scenario is run."""

    quick: bool
    seed: int = 1

    def of(self, full: float, quick: float) -> float:
        return quick if self.quick else full

    def rng(self) -> random.Random:
        return random.Random(self.seed)


@dataclass
class Verdict:
    """Figures, and the limits they were held against."""

    figures: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def at_most(self, name: str, value: float, limit: float) -> None:
        self._judge(name, value, f"<= {limit:g}", value <= limit)

    def at_least(self, name: str, value: float, limit: float) -> None:
        self._judge(name, value, f">= {limit:g}", value >= limit)

    def is_(self, name: str, value: Any, wanted: Any) -> None:
        self._judge(name, value, f"= {wanted}", value == wanted)

    def note(self, **figures: Any) -> None:
        """Figures without a limit."""
        for name, value in figures.items():
            self.figures[name] = _short(value)

    def matched(self, found: Match) -> None:
        """The common oracle."""
        for name, value in found.as_dict().items():
            if name in FAULTS:
                self.is_(name, value, 0)
            else:
                self.note(**{name: value})

    def as_dict(self) -> dict[str, Any]:
        return {"pass": not self.failed, "failed": self.failed, "figures": self.figures, "limits": self.limits}

    def _judge(self, name: str, value: Any, limit: str, holds: bool) -> None:
        self.figures[name], self.limits[name] = _short(value), limit
        if not holds or (isinstance(value, float) and math.isnan(value)):
            self.failed.append(name)


def _short(value: Any) -> Any:
    """A figure in four digits; what is not finite as text, which JSON has."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.4g}") if math.isfinite(value) else str(value)


def quantile(values: Sequence[float], share: float) -> float:
    """NaN where there is no value: no limit holds for it."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else math.nan
