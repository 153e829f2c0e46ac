"""A sign of life in a silent stream, so that proxies and clients do not take the silence for its end.

It is sent between events only, and never while an event waits for the client to take it.
"""

from __future__ import annotations

import asyncio

from harness.gateway.responses import Send, send_events
from pointsman.upstream.reading import Answer

BARE = b": keep-alive\n"
"""Without the blank line that ends an event: OpenAI's SDK makes an empty event of a comment and that line
once an event had an id, and fails on it."""


class KeepAlive:
    """Between `start` and `stop`. The relay notes in `last` when an event was sent, in `sending` while one is."""

    def __init__(self, answer: Answer, send: Send, sign: bytes, seconds: float) -> None:
        self.last = 0.0
        self.sending = False
        self._answer = answer
        self._send = send
        self._sign = sign
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.last = self._loop.time()
        self._timer = self._loop.call_later(self._seconds, self._due)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _due(self) -> None:
        now = self._loop.time()
        left = self.last + self._seconds - now
        if left > 0.001 or self.sending:
            self._timer = self._loop.call_later(max(left, 0.05), self._due)
            return
        self.last = now
        self._task = self._loop.create_task(self._tell())
        self._timer = self._loop.call_later(self._seconds, self._due)

    async def _tell(self) -> None:
        comment = self._sign.startswith(b":")
        await send_events(self._send, BARE if comment and self._answer.has_ids else self._sign)
