"""How much surer a router is of one worker than of every other."""

from __future__ import annotations

from collections.abc import Mapping


def margin(scores: Mapping[str, float], worker: str) -> float | None:
    """The worker's score less the best other one's; None where it is not scored, or alone."""
    others = [value for name, value in scores.items() if name != worker]
    return scores[worker] - max(others) if worker in scores and others else None
