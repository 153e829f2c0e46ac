"""10. A storm of leaving: 1,000 streams, half of which their callers leave at a random moment.

A call has to end at its worker within 2 s of its caller's leaving, in 99% of them; each ask has its row,
with the tokens so far where content had come. Afterwards nothing may be under way in the gateway: its
gauge of requests in flight and its descriptors are as before. (asyncio's tasks cannot be counted from
outside; the suite counts them in a gateway of its own process.)
"""

from __future__ import annotations

import asyncio
import time
import urllib.request
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from benchmarks.stress.client import Ask, payload, request_bytes
from benchmarks.stress.load import Load
from benchmarks.stress.oracle import Match
from benchmarks.stress.scene import descriptors, stage, wait_until
from benchmarks.stress.verdict import Size, Verdict, quantile

AT_ONCE = 250
PLAY = {"pause": 0.1, "pieces": 40, "gap": 0.05}
WITHIN = 2.0


@dataclass
class Leavers:
    """Those who left: when, by number of the ask, and how much they had read."""

    url: str
    left: dict[int, float] = field(default_factory=dict)
    read: dict[int, bytes] = field(default_factory=dict)

    async def leave(self, number: int, after: float) -> None:
        parts = urlsplit(self.url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        writer.write(request_bytes(payload(number, stream=True, play=PLAY)))
        got = b""
        try:
            async with asyncio.timeout(after):
                while data := await reader.read(65536):
                    got += data
        except TimeoutError:
            pass
        self.read[number] = got
        if b"[DONE]" not in got:
            self.left[number] = time.monotonic()
        writer.transport.abort()


def run(size: Size) -> dict[str, Any]:
    verdict = Verdict()
    with stage() as at:
        (pid,) = at.gateways()
        load, leavers = Load(at.url, play=PLAY, rng=size.rng()), Leavers(at.url)
        asyncio.run(load.closed(20, 1))
        baseline = descriptors(pid, at.upstream)
        asyncio.run(storm(load, leavers, int(size.of(1_000, 200))))
        quiet = wait_until(lambda: in_flight(at.url) == 0, 5)
        fds = wait_until(lambda: descriptors(pid, at.upstream) <= baseline, 10)
        found = at.settle(load.asks)
    _judge(verdict, load.asks, leavers, found)
    verdict.at_most("in_flight_gone_s", quiet, 5)
    verdict.at_most("descriptors_back_s", fds, 10)
    verdict.is_("stayers_not_whole", sum(not ask.whole for ask in load.asks), 0)
    verdict.matched(found)
    return verdict.as_dict()


def in_flight(url: str) -> float:
    with urllib.request.urlopen(f"{url}/metrics", timeout=5) as reply:
        lines = reply.read().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("pointsman_in_flight"))


async def storm(load: Load, leavers: Leavers, streams: int) -> None:
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(place: int) -> None:
        async with gate:
            if place % 2:
                await leavers.leave(next(load.numbers), load.rng.uniform(0, 2.2))
            else:
                client = load.client()
                await load.one(client, stream=True)
                client.close()

    await asyncio.gather(*(one(place) for place in range(streams)))


def _judge(verdict: Verdict, stayers: list[Ask], leavers: Leavers, found: Match) -> None:
    seen = {line["number"]: line for line in found.journal}
    took = [seen[number]["ended"] - at for number, at in leavers.left.items() if number in seen]
    verdict.at_least("cancelled_within_2_s", sum(t <= WITHIN for t in took) / max(len(took), 1), 0.99)
    rows = set(found.numbers.values())
    begun = {number for number, got in leavers.read.items() if got}
    # Who left before a byte of the answer came may have left before the gateway had read the request.
    verdict.is_("without_row", len({str(number) for number in begun} - rows), 0)
    partial = [row for row in found.calls if row[2] == "cancelled"]
    content = {n for n in leavers.left if n in begun and b'"content"' in leavers.read[n]}
    with_tokens = {found.numbers.get(row[0]) for row in found.calls if (row[5] or 0) > 0}
    verdict.is_("content_without_tokens", len({str(number) for number in content} - with_tokens), 0)
    verdict.note(left=len(leavers.left), left_after_content=len(content), cancelled_calls=len(partial))
    verdict.note(cancelled_p50_ms=quantile(took, 0.5) * 1000, cancelled_worst_ms=max(took, default=0) * 1000)
