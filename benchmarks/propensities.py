"""Are the logged probabilities those that were drawn from? The gateway's own decision code against a χ².

Every draw is a whole decision (eligibility, the chain with a rule and the default router, exploration),
as the gateway makes it; requests vary, so that eligible sets and picks do. Forced and explored
decisions are counted apart. A second test asks whether explored rows are uniform.

Run: python benchmarks/propensities.py [--draws N] [--seed S] [--quick] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections import Counter, defaultdict

from scipy import stats

from harness.routing.base import Ask
from harness.routing.chain import Chain
from harness.routing.default import DefaultRouter
from harness.routing.eligibility import Needs, eligible
from harness.routing.exploration import draw
from harness.routing.rule import RuleRouter
from pointsman.config import load_text
from pointsman.pool import Pool

CONFIG = """
[router]
chain = ["rule", "default"]
default = "w1"
[[router.rules]]
worker = "w2"
words = ["poem"]
[[router.rules]]
worker = "w3"
words = ["code"]
"""
WORKER = (
    '[[workers]]\nname = "w{n}"\ndescription = "d"\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\ntags = [{tags}]\n'
)


async def run(draws: int, seed: int, epsilon: float) -> dict:
    workers = "".join(WORKER.format(n=n, tags='"eu"' if n % 2 else "") for n in range(1, 7))
    config = load_text(CONFIG + workers)
    pool = Pool.of(config)
    chain = Chain([RuleRouter(config.router.rules), DefaultRouter("w1")], time.monotonic)
    rng = random.Random(seed)
    kinds = [
        ("write a poem", Needs()),
        ("some code", Needs()),
        ("hello", Needs()),
        ("hello", Needs(tags=frozenset({"eu"}))),
    ]
    expected: dict[int, Counter] = defaultdict(Counter)
    seen: dict[int, Counter] = defaultdict(Counter)
    explored: Counter = Counter()
    forced = 0
    worst_sum = 0.0
    for number in range(draws):
        kind = number % len(kinds)
        text, needs = kinds[kind]
        fit = eligible(pool, needs, lambda name: True)
        decided = await chain.decide(Ask(text), fit.workers, rng.getrandbits(32))
        drawn = draw(decided.scored.scores, epsilon, rng)
        worst_sum = max(worst_sum, abs(sum(drawn.probabilities.values()) - 1))
        forced += drawn.forced is not None
        expected[kind].update(drawn.probabilities)
        seen[kind][drawn.chosen] += 1
        if drawn.explored and len(fit.workers) == 6:
            explored[drawn.chosen] += 1
    chi, degrees = 0.0, 0
    for kind, probabilities in expected.items():
        for name, mass in probabilities.items():
            chi += (seen[kind][name] - mass) ** 2 / mass
        degrees += len(probabilities) - 1
    uniform = stats.chisquare([explored[f"w{n}"] for n in range(1, 7)])
    return {
        "draws": draws,
        "epsilon": epsilon,
        "chi2": round(chi, 2),
        "degrees_of_freedom": degrees,
        "p_value": round(float(stats.chi2.sf(chi, degrees)), 4),
        "explored": sum(explored.values()),
        "explored_uniform_p_value": round(float(uniform.pvalue), 4),
        "forced": forced,
        "worst_distance_of_a_sum_from_1": worst_sum,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epsilon", type=float, default=0.2)
    parser.add_argument("--quick", action="store_true", help="2,000 draws")
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    arguments = parser.parse_args()
    result = asyncio.run(run(2000 if arguments.quick else arguments.draws, arguments.seed, arguments.epsilon))
    for name, value in result.items():
        print(f"{name:32} {value}")
    if arguments.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
