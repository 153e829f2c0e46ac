"""A limit of requests a minute for each worker: calls are spread evenly, none is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

Sleep = Callable[[float], Awaitable[None]]


class Pace:
    """`per_minute` None: no limit. `clock` in seconds; one per event loop."""

    def __init__(self, per_minute: float | None, *, clock: Callable[[], float], sleep: Sleep = asyncio.sleep) -> None:
        self._gap = 60 / per_minute if per_minute else 0.0
        self._clock = clock
        self._sleep = sleep
        self._next: dict[str, float] = {}

    async def turn(self, worker: str) -> None:
        """Waits until this worker may be asked again."""
        if not self._gap:
            return
        now = self._clock()
        at = max(self._next.get(worker, now), now)
        self._next[worker] = at + self._gap
        if at > now:
            await self._sleep(at - now)
