"""Sees a Celery consumer that takes no messages any more although some wait and a process is free.

An acknowledgement that fails with its connection is only logged by Celery. The message then counts as under way
for ever and, as one is taken at a time, the worker waits for it while all looks well (seen with Redis, when it was
killed in the moment that a job ended). The remedy is what Celery does by itself when it notices: to connect anew.
Jobs that run are not touched by that.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from typing import Any, Protocol

from pointsman.errors import BrokerAway
from pointsman.words import JobQueue

LOOK_SECONDS = 5.0
"""Two looks in a row have to find the same."""

log = logging.getLogger("pointsman.worker")


class Queue(Protocol):
    """`broker.Wire`, as far as it is needed here."""

    def waiting(self, queue: JobQueue) -> int: ...


class Watch:
    """Of one consumer. `busy` holds what the pool's processes are at now."""

    def __init__(self, wire: Queue, queue: JobQueue, concurrency: int, busy: Collection[Any]) -> None:
        self._wire = wire
        self._queue = queue
        self._concurrency = concurrency
        self._busy = busy
        self._consumer: Any = None
        self._received = 0
        self._suspicious_at: int | None = None

    def follow(self, consumer: Any) -> None:
        """Called again after each reconnection."""
        self._consumer = consumer
        self._suspicious_at = None

    def received(self) -> None:
        """A message has come in."""
        self._received += 1

    def look(self) -> bool:
        """Whether the consumer was told to connect anew."""
        suspicious = self._consumer is not None and len(self._busy) < self._concurrency and self._waits()
        if not suspicious:
            self._suspicious_at = None
        elif self._suspicious_at != self._received:
            self._suspicious_at = self._received
        else:
            log.warning("messages wait and a process is free, but none is taken: connecting to the broker anew")
            self._suspicious_at = None
            self._consumer.call_soon(_lose_the_connection)
            return True
        return False

    def run(self, wait: Callable[[float], object] = threading.Event().wait) -> None:
        """For ever, in a thread of its own."""
        while True:
            wait(LOOK_SECONDS)
            self.look()

    def _waits(self) -> bool:
        try:
            return self._wire.waiting(self._queue) > 0
        except BrokerAway:
            return False  # Celery's own loop sees that too


def _lose_the_connection() -> None:
    """Raised in Celery's loop, where it is what a lost connection raises."""
    raise ConnectionResetError("no message comes in")
