"""1. Steady load: 200 callers, half of the answers streamed, prompts of 1 to 8 KB, workers that take 100 ms.

The callers ask 200 times a second in all, whatever the answers take, so that the latencies are those of
a rate and not of a queue; then all 200 ask without a pause, which gives the capacity (`rps_flat_out`;
its stretch is 600). Added latency is an ask's time less what its worker took, by the worker's own clock;
the load, the workers and Postgres run on the same machine.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from benchmarks.stress.load import Load
from benchmarks.stress.scene import Stage, added, rss_mb, stage
from benchmarks.stress.verdict import Size, Verdict, quantile

CALLERS = 200
RATE = 200.0
KILOBYTES = (1_000, 8_000)


def run(size: Size) -> dict[str, Any]:
    seconds = size.of(600, 6)
    verdict = Verdict()
    with stage(pause=0.1) as at:
        load = Load(at.url, size=KILOBYTES, rng=size.rng())
        asyncio.run(load.paced(CALLERS, RATE, 2))  # connections are made, code is warm
        warm = len(load.asks)
        samples = asyncio.run(_steady(at, load, seconds))
        steady = load.asks[warm:]
        flat_out = asyncio.run(_flat_out(load, size.of(20, 3)))
        found = at.settle(load.asks)
    extra = added(steady, found.journal)
    verdict.at_least("rps", len(steady) / (max(ask.ended for ask in steady) - min(ask.began for ask in steady)), 150)
    verdict.at_most("added_p50_ms", quantile(extra, 0.5) * 1000, 15)
    verdict.at_most("added_p99_ms", quantile(extra, 0.99) * 1000, 120)
    verdict.is_("server_errors", sum((ask.status or 500) >= 500 for ask in load.asks), 0)
    verdict.is_("not_whole", sum(not ask.whole for ask in load.asks), 0)
    verdict.matched(found)
    slope = mb_per_minute(samples)
    if size.quick:  # a slope needs minutes
        verdict.note(rss_slope_mb_per_min=None)
    else:
        verdict.at_most("rss_slope_mb_per_min", slope, 1)
    verdict.note(seconds=seconds, asks=len(load.asks), rps_flat_out=flat_out, rss_mb=samples[-1][1])
    return verdict.as_dict()


async def _steady(at: Stage, load: Load, seconds: float) -> list[tuple[float, float]]:
    """(time, MB) of the gateway through the load."""
    (pid,) = at.gateways()
    samples = []
    task = asyncio.create_task(load.paced(CALLERS, RATE, seconds))
    while not task.done():
        samples.append((time.monotonic(), rss_mb(pid)))
        await asyncio.wait({task}, timeout=1)
    await task
    return samples


async def _flat_out(load: Load, seconds: float) -> float:
    before, began = len(load.asks), time.monotonic()
    await load.closed(CALLERS, seconds)
    return (len(load.asks) - before) / (time.monotonic() - began)


def mb_per_minute(samples: list[tuple[float, float]]) -> float:
    """The least-squares slope after the first third, in which caches fill."""
    kept = samples[len(samples) // 3 :]
    mean_t = sum(t for t, _ in kept) / len(kept)
    mean_m = sum(m for _, m in kept) / len(kept)
    spread = sum((t - mean_t) ** 2 for t, _ in kept)
    return 60 * sum((t - mean_t) * (m - mean_m) for t, m in kept) / spread if spread else 0.0
