"""A circuit breaker per worker: closed, open for a while after failures in a row, then one probe at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

LONGEST_OPEN = 60.0


@dataclass
class _State:
    failures: int = 0
    opened: int = 0  # openings in a row: each doubles the next
    open_until: float = 0.0
    probing_until: float = 0.0
    cooling: bool = False  # open because a 429 said so


class Breaker:
    """Times are seconds of `clock`. A worker is unhealthy while open, and while its probe runs."""

    def __init__(self, failures: int, open_seconds: float, clock: Callable[[], float]) -> None:
        self._failures = failures
        self._open_seconds = open_seconds
        self._clock = clock
        self._states: dict[str, _State] = {}

    @property
    def quiet(self) -> bool:
        """Whether nobody has failed of late: every worker is healthy."""
        return not self._states

    def healthy(self, worker: str) -> bool:
        """Whether a call may be sent now: closed, or half-open with no probe under way."""
        state = self._states.get(worker)
        if state is None or not state.open_until:
            return True
        now = self._clock()
        return now >= state.open_until and now >= state.probing_until

    def started(self, worker: str) -> None:
        """A call was sent. In half-open it is the probe, and holds others back until it ends."""
        state = self._states.get(worker)
        if state is not None and state.open_until:
            state.probing_until = self._clock() + self._open_seconds

    def answered(self, worker: str) -> None:
        """Content has begun to come: half-open closes, but the next failure in a row opens again."""
        state = self._states.get(worker)
        if state is not None and state.open_until and self._clock() >= state.open_until:
            state.failures = self._failures - 1
            state.open_until = state.probing_until = 0.0

    def succeeded(self, worker: str) -> None:
        """An answer came to its end."""
        self._states.pop(worker, None)

    def failed(self, worker: str) -> None:
        """A failure that is the worker's: connection, timeout, 5xx, our key refused, a broken reply."""
        state = self._states.setdefault(worker, _State())
        state.failures += 1
        if self._clock() < state.open_until:
            return  # it was asked all the same: no news
        if state.open_until or state.failures >= self._failures:
            state.cooling = False
            self._open(state, min(self._open_seconds * 2**state.opened, LONGEST_OPEN))

    def cool_down(self, worker: str, seconds: float) -> None:
        """A 429 that said how long: open for that time."""
        state = self._states.setdefault(worker, _State())
        state.cooling = not state.open_until or state.cooling
        self._open(state, seconds)

    def down(self, worker: str) -> bool:
        """Whether it is open for its failures: not to be asked even where no other is healthy."""
        state = self._states.get(worker)
        return state is not None and not state.cooling and not self.healthy(worker)

    def seconds_left(self, worker: str) -> float:
        """How long until a probe may be sent; 0 where the worker is healthy."""
        state = self._states.get(worker)
        return max(state.open_until - self._clock(), 0.0) if state else 0.0

    def open_workers(self) -> list[str]:
        return [name for name, state in self._states.items() if state.open_until]

    def _open(self, state: _State, seconds: float) -> None:
        state.opened = min(state.opened + 1, 10)
        state.open_until = self._clock() + seconds
        state.probing_until = 0.0
