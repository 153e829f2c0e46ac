"""Clients under load: each sends one request after another, half of them streamed, and notes what it saw."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import aiohttp

MESSAGES = [{"role": "user", "content": "Which way do the points lie?"}]


@dataclass
class Seen:
    """One request as its client saw it. `byte` says that an answer began; `whole` that it ended as it should."""

    began: float
    streamed: bool
    status: int | None = None
    decision: str | None = None
    byte: bool = False
    whole: bool = False
    told: bool = False  # an error object, as the answer or in the stream
    error: str | None = None


@dataclass
class Clients:
    """`count` clients of a gateway at `url`, from `run` until `stop`."""

    url: str
    count: int
    pause: float = 0.0
    seen: list[Seen] = field(default_factory=list)
    stopping: bool = False

    async def run(self, until: Callable[[], bool] = lambda: False) -> None:
        """Sends until `stop` or `until`; requests that run then are awaited."""
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=60)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            await asyncio.gather(*(self._client(session, number, until) for number in range(self.count)))

    def stop(self) -> None:
        self.stopping = True

    @property
    def failed(self) -> list[Seen]:
        return [seen for seen in self.seen if not seen.whole]

    async def _client(self, session: aiohttp.ClientSession, number: int, until: Callable[[], bool]) -> None:
        turn = number
        while not (self.stopping or until()):
            turn += 1
            seen = Seen(time.monotonic(), bool(turn % 2))
            self.seen.append(seen)
            await ask(session, self.url, seen)
            if self.pause or not seen.whole:
                await asyncio.sleep(max(self.pause, 0.0 if seen.whole else 0.02))


async def ask(session: aiohttp.ClientSession, url: str, seen: Seen, model: str = "pointsman") -> None:
    """Sends one request and fills `seen`; what breaks off is noted, not raised."""
    body = {"model": model, "messages": MESSAGES, "stream": seen.streamed}
    try:
        async with session.post(f"{url}/v1/chat/completions", json=body) as reply:
            seen.status = reply.status
            seen.decision = reply.headers.get("x-pointsman-decision-id")
            seen.byte = True
            text = (await reply.read()).decode()
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        seen.error = type(error).__name__
        return
    seen.told = '"error":{' in text.replace(" ", "")
    if seen.streamed and seen.status == 200:
        seen.whole = text.endswith("data: [DONE]\n\n")
    else:
        seen.whole = seen.status == 200 and "choices" in json.loads(text)
