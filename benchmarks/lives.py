"""What happens over the whole life of a router? Simulated lives of twenty turns under one α ledger.

Each turn brings a candidate. It may need a certificate on audit rows that its search never saw, then passes a live
gate with the ramp; what is spent comes from the ledger. All of it is the product's own statistics.

    nothing_to_gain    the share of lives with any promotion, at most α + 3·√(α(1 − α)/lives) (`allowed`); `gate` lets
                       every candidate into a canary, `certified` asks for the certificate first
    gain_.02, gain_.05 every candidate is so much better than the first incumbent: the share promoted (power), the
                       median turn and the median request of it
    drifting           a worker is replaced in three turns of ten: regret to the oracle of what serves beside that of
                       the first router kept for ever; the share of turns in which the certified ε was exceeded, and
                       the share of promotions that were worse than what served

Run: python benchmarks/lives.py [--lives N] [--seed S] [--quick] [--json]
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
from living.drifting import World, drift
from living.turns import Life, Lives, live

ALPHA = 0.05


def fixed_pool(lives: int, rng: np.random.Generator) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, gain in (("nothing_to_gain", 0.0), ("gain_.02", 0.02), ("gain_.05", 0.05)):
        found = {flow: live(Life(gain, flow == "certified"), lives, rng) for flow in ("gate", "certified")}
        result[name] = {flow: _told(outcome) for flow, outcome in found.items()}
    return result


def drifting_pool(lives: int, rng: np.random.Generator) -> dict[str, Any]:
    turns = [drift(World(), rng) for _ in range(lives)]
    regret = np.array([[turn.regret for turn in life] for life in turns])
    kept = np.array([[turn.kept for turn in life] for life in turns])
    bound = np.array([[turn.bound for turn in life] for life in turns])
    promotions = [turn for life in turns for turn in life if turn.promoted]
    saved = (kept - regret).mean(axis=1)
    return {
        "regret": _mean(regret.mean(axis=1)),
        "regret_kept": _mean(kept.mean(axis=1)),
        "regret_saved": _mean(saved),
        "certified_epsilon": _mean(bound.mean(axis=1)),
        "epsilon_exceeded": float((regret > bound).mean()),
        "promotions_per_life": len(promotions) / lives,
        "worse_promotions": float(np.mean([turn.worse for turn in promotions])) if promotions else 0.0,
    }


def _told(lives: Lives) -> dict[str, Any]:
    reached = lives.request[np.isfinite(lives.request)]
    return {
        "promoted": lives.promoted,
        "median_turn": lives.median_turn(),
        "median_request_of_promoted": float(np.median(reached)) if len(reached) else None,
        "canaries_per_life": float(lives.canaries.mean()),
    }


def _mean(values: np.ndarray) -> dict[str, Any]:
    """Mean over lives with a 95% interval; the life is the unit."""
    half = 1.96 * float(values.std(ddof=1)) / len(values) ** 0.5
    middle = float(values.mean())
    return {"mean": middle, "interval": [middle - half, middle + half]}


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    return round(value, 4) if isinstance(value, float) else value


def measure(lives: int, seed: int) -> dict[str, Any]:
    began = time.monotonic()
    fixed, drifting = np.random.default_rng(seed).spawn(2)
    result: dict[str, Any] = {"lives": lives, "allowed": ALPHA + 3 * (ALPHA * (1 - ALPHA) / lives) ** 0.5}
    result |= fixed_pool(lives, fixed) | {"drifting": drifting_pool(max(30, lives // 10), drifting)}
    return rounded(result | {"seconds": time.monotonic() - began})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lives", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="300 lives")
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    arguments = parser.parse_args()
    result = measure(300 if arguments.quick else arguments.lives, arguments.seed)
    for name, value in result.items():
        print(f"{name:16} {value}")
    if arguments.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
