"""A share with the number it rests on, and its interval."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

Z_95 = 1.959963984540054


@dataclass(frozen=True)
class Proportion:
    """`count` of `n`."""

    count: int
    n: int

    @property
    def share(self) -> float | None:
        """The plain share, None where there is nothing to divide by."""
        return self.count / self.n if self.n else None

    def wilson(self, z: float = Z_95) -> tuple[float, float] | None:
        """Wilson's score interval (1927), 95% by default; it stays inside [0, 1] and is honest at 0 of n."""
        if not self.n:
            return None
        p, n = self.count / self.n, self.n
        centre = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        low = 0.0 if self.count == 0 else max(0.0, centre - half)
        high = 1.0 if self.count == self.n else min(1.0, centre + half)
        return low, high
