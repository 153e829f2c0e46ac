"""Load on a gateway: callers in a closed loop, or asks at a rate that does not wait for the answers."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from benchmarks.stress.client import Ask, Client, payload


@dataclass
class Load:
    """Asks sent so far. Half are streams; `size` bounds the characters of filler; `play` goes to the workers."""

    url: str
    play: dict[str, Any] | None = None
    size: tuple[int, int] = (0, 0)
    places: int = 3
    timeout: float = 90.0
    asks: list[Ask] = field(default_factory=list)
    stopping: bool = False
    numbers: count[int] = field(default_factory=lambda: count(1))
    rng: random.Random = field(default_factory=lambda: random.Random(1))

    def client(self) -> Client:
        parts = urlsplit(self.url)
        assert parts.hostname and parts.port
        return Client(parts.hostname, parts.port, self.timeout)

    async def one(self, client: Client, headers: dict[str, str] | None = None, **fields: Any) -> Ask:
        """One more ask over a client's connection."""
        number = next(self.numbers)
        ask = Ask(number, fields.pop("stream", number % 2 == 0))
        self.asks.append(ask)
        given = {"play": self.play, "size": self.rng.randint(*self.size), "places": self.places, **fields}
        return await client.send(ask, payload(number, stream=ask.streamed, **given), headers)

    async def closed(self, callers: int, seconds: float = 1e9) -> None:
        """`callers` ask without a pause until `stop` or the time is over; asks that run then are awaited."""
        until = time.monotonic() + seconds

        async def caller() -> None:
            client = self.client()
            while not self.stopping and time.monotonic() < until:
                ask = await self.one(client)
                if not ask.whole:
                    await asyncio.sleep(min(ask.retry_after or 0.05, 1.0))
            client.close()

        await asyncio.gather(*(caller() for _ in range(callers)))

    async def paced(self, callers: int, rate: float, seconds: float = 1e9) -> None:
        """`callers` ask in turn, `rate` asks a second in all; a caller who is late skips no turn."""
        period = callers / rate
        began = time.monotonic()
        until = began + seconds

        async def caller(place: int) -> None:
            client = self.client()
            due = began + period * place / callers
            while not self.stopping and due < until:
                await asyncio.sleep(max(due - time.monotonic(), 0.0))
                await self.one(client)
                due = max(due + period, time.monotonic() - period)
            client.close()

        await asyncio.gather(*(caller(place) for place in range(callers)))

    def stop(self) -> None:
        self.stopping = True


async def during(work: Any, middle: Callable[[], Any]) -> Any:
    """Runs `middle` while `work` runs, and gives its result when both have ended."""
    task = asyncio.ensure_future(work)
    try:
        found = await middle()
    except BaseException:
        task.cancel()
        raise
    await task
    return found
