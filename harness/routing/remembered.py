"""What is made once for each tuple of workers: the gateway offers the same few tuples again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from pointsman.pool import Worker

KEPT = 512

T = TypeVar("T")


class Remembered(Generic[T]):
    """Knows a tuple by its identity, since comparing workers would cost more than making most things anew."""

    def __init__(self, make: Callable[[tuple[Worker, ...]], T]) -> None:
        self._make = make
        self._known: dict[int, tuple[tuple[Worker, ...], T]] = {}

    def __call__(self, workers: tuple[Worker, ...]) -> T:
        known = self._known.get(id(workers))
        if known is not None and known[0] is workers:
            return known[1]
        if len(self._known) >= KEPT:
            self._known.clear()
        made = self._make(workers)
        self._known[id(workers)] = workers, made
        return made
