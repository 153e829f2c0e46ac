"""How soon a fall of a worker's mean is noticed, and how often there is an alarm without one."""

from __future__ import annotations

import numpy as np

from pointsman.statistics.change import detector_paths


def median_delay(
    after: float, reps: int, rng: np.random.Generator, *, before: float = 0.85, usual: float = 0.85, quiet: int = 200
) -> float:
    """Observations from the change, at `quiet`, to the alarm at 1/α = 5,000; ∞ if most see none in 3,000."""
    steady = rng.random((reps, quiet)) < before
    fallen = rng.random((reps, 3_000)) < after
    paths = detector_paths(np.concatenate([steady, fallen], axis=1).astype(float), usual)
    return float(np.median(first_alarm(paths) - quiet))


def early_alarms(reps: int, n: int, rng: np.random.Generator, *, mean: float = 0.85, usual: float = 0.85) -> float:
    """The share of streams without a change that alarm within n observations."""
    paths = detector_paths((rng.random((reps, n)) < mean).astype(float), usual)
    return float(np.isfinite(first_alarm(paths)).mean())


def first_alarm(paths: np.ndarray, run_length: float = 5_000) -> np.ndarray:
    """When each stream first alarmed, counted from 1; ∞ if never."""
    alarmed = paths >= run_length
    return np.where(alarmed.any(axis=1), alarmed.argmax(axis=1) + 1.0, np.inf)
