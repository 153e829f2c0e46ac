"""2. Burst and back-pressure: 2,000 callers within a second, 300 let in at a time, workers that take 1 s.

A caller that is refused waits as long as it was told and asks again, so the crowd stays until the burst
is over. Then the callers of before come back: `recovers_s` is when their p99 over a second is again at
most 1.25 times what it was.
"""

from __future__ import annotations

import asyncio
import math
import time
from typing import Any

from benchmarks.stress.client import Ask
from benchmarks.stress.load import Load
from benchmarks.stress.scene import Stage, rss_mb, stage
from benchmarks.stress.verdict import Size, Verdict, quantile

CROWD = 2_000
IN_FLIGHT = 300
CALLERS = 100
RATE = 80.0
BACK = 1.25
PATIENCE = 10.0


def run(size: Size) -> dict[str, Any]:
    verdict = Verdict()
    with stage(f"[gateway]\nmax_in_flight = {IN_FLIGHT}\n", pause=1.0) as at:
        (pid,) = at.gateways()
        load = Load(at.url, rng=size.rng())
        asyncio.run(load.paced(CALLERS, RATE, size.of(10, 3)))
        steady = quantile([ask.seconds for ask in load.asks], 0.99)
        before = len(load.asks)
        ended, peak = asyncio.run(crowd_in(at, load, int(size.of(CROWD, 800)), size.of(15, 3)))
        crowd = load.asks[before:]
        after = len(load.asks)
        asyncio.run(load.paced(CALLERS, RATE, size.of(15, 4)))
        recovers = _recovers(load.asks[after:], ended, steady)
        same = at.gateways() == [pid]
        found = at.settle(load.asks)
    refused = [ask for ask in crowd if ask.status == 429]
    admitted = [ask for ask in crowd if ask.status == 200]
    verdict.at_least("refused", len(refused), 1)
    verdict.is_("refused_without_retry_after", sum(ask.retry_after is None for ask in refused), 0)
    verdict.at_most("refused_p99_ms", quantile([ask.seconds for ask in refused], 0.99) * 1000, 200)
    verdict.at_most("admitted_p99_over_steady", quantile([ask.seconds for ask in admitted], 0.99) / steady, 3)
    verdict.at_most("recovers_s", recovers, PATIENCE)
    verdict.is_("same_process", same, True)
    verdict.is_("neither_200_nor_429", sum(ask.status not in (200, 429) for ask in load.asks), 0)
    verdict.is_("admitted_not_whole", sum(not ask.whole for ask in admitted), 0)
    verdict.matched(found)
    waits = [ask.first - ask.began for ask in refused]
    verdict.note(
        admitted=len(admitted), steady_p99_s=steady, refused_p50_ms=quantile(waits, 0.5) * 1000, rss_peak_mb=peak
    )
    return verdict.as_dict()


async def crowd_in(at: Stage, load: Load, crowd: int, seconds: float) -> tuple[float, float]:
    """When the burst ended, and the gateway's memory at its worst."""
    (pid,) = at.gateways()
    until = time.monotonic() + 1 + seconds
    peak = 0.0

    async def caller(place: int) -> None:
        client = load.client()
        await asyncio.sleep(place / crowd)
        while time.monotonic() < until:
            ask = await load.one(client)
            if ask.status != 200:
                await asyncio.sleep((ask.retry_after or 1) * load.rng.uniform(1, 1.5))
        client.close()

    task = asyncio.gather(*(caller(place) for place in range(crowd)))
    while not task.done():
        peak = max(peak, rss_mb(pid))
        await asyncio.wait({task}, timeout=0.2)
    await task
    return until, peak


def _recovers(asks: list[Ask], ended: float, steady: float) -> float:
    """Seconds from the end of the burst to the first second whose asks are as quick as before it."""
    first = min(ask.began for ask in asks)
    for second in range(math.ceil(PATIENCE) + 5):
        begun = [ask.seconds for ask in asks if second <= ask.began - first < second + 1 and ask.whole]
        if begun and quantile(begun, 0.99) <= BACK * steady:
            return first + second - ended if first > ended else float(second)
    return math.inf
