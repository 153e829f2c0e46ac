"""Heavy reads, shared by all sessions of a server: two at a time, and equal ones once.

Ten people who open the overview at one moment cause one read of it. A value is shared only under a key that names the
database, the project and everything that was asked, so nobody sees what they could not have read themselves.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

if TYPE_CHECKING:
    from dashboard.data import Source

T = TypeVar("T")
AT_ONCE = 2
KEPT = 64  # values; an overview is some kilobytes
FRESH = 15.0  # seconds
MINUTE = 60.0


class Shared:
    """A small cache with one computation per key at a time and `at_once` in all."""

    def __init__(self, at_once: int = AT_ONCE, clock: Callable[[], float] = time.monotonic) -> None:
        self._slots = threading.Semaphore(at_once)
        self._guard = threading.Lock()
        self._clock = clock
        self._keys: dict[Hashable, tuple[threading.Lock, int]] = {}
        self._values: OrderedDict[Hashable, tuple[float, Any]] = OrderedDict()

    def get(self, key: Hashable, compute: Callable[[], T], fresh: float = FRESH) -> T:
        """A value not older than `fresh` seconds; who comes while it is computed waits for it."""
        with self._lock_of(key):
            try:
                kept = self._values.get(key)
                if kept is not None and self._clock() - kept[0] < fresh:
                    value: T = kept[1]
                    return value
                with self._slots:
                    value = compute()
                self._keep(key, value)
                return value
            finally:
                self._release(key)

    def _lock_of(self, key: Hashable) -> threading.Lock:
        with self._guard:
            lock, waiting = self._keys.get(key, (threading.Lock(), 0))
            self._keys[key] = (lock, waiting + 1)
            return lock

    def _release(self, key: Hashable) -> None:
        with self._guard:
            lock, waiting = self._keys[key]
            if waiting > 1:
                self._keys[key] = (lock, waiting - 1)
            else:
                del self._keys[key]

    def _keep(self, key: Hashable, value: Any) -> None:
        with self._guard:
            self._values[key] = (self._clock(), value)
            self._values.move_to_end(key)
            while len(self._values) > KEPT:
                self._values.popitem(last=False)


@st.cache_resource(show_spinner=False)
def shared() -> Shared:
    """The server's one."""
    return Shared()


def once(source: Source, read: Callable[..., T], *more: Hashable) -> T:
    """`read(engine, project, *more)`, shared by all who look at the same project of the same database for a minute."""
    key = (read.__module__, read.__qualname__, source.database, source.project, *more)
    return shared().get(key, lambda: read(source.engine, source.project, *more), MINUTE)
