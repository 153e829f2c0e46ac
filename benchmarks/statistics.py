"""Do the guarantees hold? Simulated error rates of confidence sequences, gates and off-policy intervals.

Every claim is simulated with the product's own code beside what people do without it: an interval that is looked at
all the time, a z-test every 200 requests, the direct method's interval. α = .05.

    cs_miscoverage, peeking_miscoverage
        2,000 observations; over three distributions the largest of ours, the smallest of the z-interval's
    gate_false_promotion, peeking_false_promotion
        12,000 requests, 20% disagreements, candidate no better: the largest over 50/50 mixing, the ramp, and a margin
        at its boundary; the z-test under 50/50
    dr_coverage, dm_coverage
        nominal 95%, the same logs of 2,000 requests
    median_requests_to_promote, median_requests_with_ramp
        candidate .02 better overall (.10 where the routers disagree)

Rates have Monte-Carlo error: each is to be read against α + 3·√(α(1 − α)/reps), printed as `allowed`; medians have
95% intervals.

Run: python benchmarks/statistics.py [--reps N] [--seed S] [--quick] [--json]
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "statistics":
    # A script of this folder, or something it imports, asked for the standard library's module of this name.
    import importlib.util
    import os

    _spec = importlib.util.spec_from_file_location(__name__, Path(os.__file__).with_name("statistics.py"))
    assert _spec is not None and _spec.loader is not None
    sys.modules[__name__] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules[__name__])
else:
    import argparse
    import json
    import time
    from typing import Any

    import numpy as np
    from certainty import falls, gates, judges, logs, means, thresholds
    from certainty.gates import Rules, Traffic

    from pointsman.statistics.ramp import Ramp


def mean_rates(reps: int, rng: np.random.Generator) -> dict[str, Any]:
    found = {name: means.ever_missed(name, reps, 2_000, rng) for name in means.DISTRIBUTIONS}
    return {
        "cs_miscoverage": max(missed.betting for missed in found.values()),
        "peeking_miscoverage": min(missed.peeking for missed in found.values()),
        "means": {name: vars(missed) for name, missed in found.items()},
    }


def gate_rates(reps: int, rng: np.random.Generator) -> dict[str, Any]:
    even = gates.run_gates(Traffic(0.0), Rules(), reps, rng)
    ramp = gates.run_gates(Traffic(0.0, ramp=Ramp()), Rules(), reps, rng)
    boundary = gates.run_gates(Traffic(-0.1), Rules(epsilon=0.1, epsilon_rollback=0.1), reps, rng)
    return {
        "gate_false_promotion": max(even.promotions, ramp.promotions, boundary.promotions),
        "peeking_false_promotion": even.peeking_promotions,
        "false_promotion": {
            "even": even.promotions,
            "ramp": ramp.promotions,
            "margin .10 at its boundary": boundary.promotions,
        },
    }


def gate_delays(reps: int, rng: np.random.Generator) -> dict[str, Any]:
    even = gates.run_gates(Traffic(0.1, requests=40_000), Rules(), reps, rng)
    ramp = gates.run_gates(Traffic(0.1, requests=40_000, ramp=Ramp()), Rules(), reps, rng)
    worse = gates.run_gates(Traffic(-0.1), Rules(), reps, rng)
    return {
        "median_requests_to_promote": float(np.median(even.promoted)),
        "median_requests_with_ramp": float(np.median(ramp.promoted)),
        "median_intervals": {"even": median_interval(even.promoted), "ramp": median_interval(ramp.promoted)},
        "promoted": {"even": even.promotions, "ramp": ramp.promotions, "candidate .10 worse": worse.promotions},
        "median_rows_to_promote": {
            "even": float(np.median(even.promoted_rows)),
            "ramp": float(np.median(ramp.promoted_rows)),
        },
        "rolled_back": {
            "candidate .10 worse": worse.rollbacks,
            "median rows": float(np.median(worse.rolled_back_rows)),
            "candidate .10 better": even.rollbacks,
        },
    }


def median_interval(waits: np.ndarray) -> list[float]:
    """A 95% interval of the median from order statistics."""
    half = 0.98 * len(waits) ** 0.5
    ranks = [max(0, int(len(waits) / 2 - half)), min(len(waits) - 1, int(len(waits) / 2 + half))]
    return [float(wait) for wait in np.sort(waits)[ranks]]


def log_rates(reps: int, rng: np.random.Generator) -> dict[str, Any]:
    covered = logs.coverage(reps, 2_000, 0.2, rng)
    return {
        "dr_coverage": covered.dr,
        "dm_coverage": covered.dm,
        "dr_difference_coverage": covered.dr_difference,
        "log_disagreements": covered.disagreements,
    }


def other_rates(reps: int, rng: np.random.Generator) -> dict[str, Any]:
    threshold = thresholds.violations(reps, 2_000, 0.1, 0.05, rng)
    judged = judges.coverage(reps, 200, 4_000, rng)
    delays = {f".85 to {after}": falls.median_delay(after, min(reps, 200), rng) for after in (0.8, 0.75, 0.65)}
    early = {
        "usual .85": falls.early_alarms(reps, 500, rng),
        "usual .82": falls.early_alarms(reps, 500, rng, usual=0.82),
    }
    return {"threshold": vars(threshold), "judge": vars(judged), "fall_delay": delays, "early_alarms": early}


def measure(reps: int, seed: int) -> dict[str, Any]:
    parts = (mean_rates, gate_rates, gate_delays, log_rates, other_rates)
    streams = np.random.default_rng(seed).spawn(len(parts))
    result: dict[str, Any] = {"reps": reps, "allowed": 0.05 + 3 * (0.05 * 0.95 / reps) ** 0.5}
    began = time.monotonic()
    for part, stream in zip(parts, streams, strict=True):
        result |= part(reps, stream)
    return rounded(result | {"seconds": time.monotonic() - began})


def rounded(value: Any) -> Any:
    """Four digits; a median that was never reached is no number in JSON: null."""
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    if isinstance(value, float):
        return round(value, 4) if np.isfinite(value) else None
    return value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reps", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="500 repetitions")
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    arguments = parser.parse_args()
    result = measure(500 if arguments.quick else arguments.reps, arguments.seed)
    for name, value in result.items():
        print(f"{name:28} {value}")
    if arguments.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
