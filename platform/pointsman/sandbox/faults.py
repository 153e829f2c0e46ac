"""Faults on demand: what a provider does when it fails, by worker, for a share or a number of calls."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Literal, get_args

from pointsman.errors import RequestError

FaultKind = Literal[
    "400",  # the request is refused
    "401",  # the key is refused
    "429",  # rate limit, with Retry-After as given (seconds or an HTTP date, sent as it is)
    "500",
    "502",
    "503",
    "context",  # 400: the prompt is longer than the context window
    "stall",  # no byte, until the client leaves or `seconds` have passed
    "reset",  # the connection is reset without an answer
    "cut",  # a stream stops after some content, without [DONE]; a body stops short
    "malformed",  # an event, or a body, that is not JSON
    "error_200",  # status 200 with an error object
    "error_midstream",  # an error event after some content
    "no_usage",  # the answer carries no usage
    "empty",  # no choices, or no content at all
    "slow",  # `seconds` more before the first byte
]
FAULTS: tuple[str, ...] = get_args(FaultKind)
EVERY = "*"


@dataclass(frozen=True)
class Fault:
    """One fault in force. `worker` "*" is every worker, the router LLM not among them."""

    worker: str
    fault: FaultKind
    share: float = 1.0
    count: int | None = None
    retry_after: str | None = None
    seconds: float | None = None


class FaultBoard:
    """The faults in force; the newest that applies to a call is taken."""

    def __init__(self, names: Collection[str], router: str, rng: Random) -> None:
        self._names = frozenset(names)
        self._router = router
        self._rng = rng
        self._faults: list[Fault] = []

    def add(self, body: Mapping[str, Any]) -> Fault:
        """Puts a fault in force; raises `RequestError` for one that says nothing."""
        fault = _read(body, {*self._names, self._router, EVERY})
        self._faults.append(fault)
        return fault

    def clear(self, worker: str | None = None) -> None:
        """Ends the faults of one worker, or all."""
        self._faults = [fault for fault in self._faults if worker is not None and fault.worker != worker]

    def listed(self) -> list[Fault]:
        return list(self._faults)

    def take(self, worker: str) -> Fault | None:
        """The fault of this call, if any; counts it."""
        for position in range(len(self._faults) - 1, -1, -1):
            fault = self._faults[position]
            applies = fault.worker == worker or (fault.worker == EVERY and worker != self._router)
            if not applies or self._rng.random() >= fault.share:
                continue
            if fault.count is not None:
                left = replace(fault, count=fault.count - 1)
                self._faults[position : position + 1] = [left] if left.count else []
            return fault
        return None


def _read(body: Mapping[str, Any], names: Collection[str]) -> Fault:
    unknown = body.keys() - {"worker", "fault", "share", "count", "retry_after", "seconds"}
    if unknown:
        raise RequestError(f"{min(unknown)}: no such key", param=min(unknown))
    worker, kind = body.get("worker"), str(body.get("fault"))
    if worker not in names:
        raise RequestError(f"worker: expected one of {sorted(names)}, got {worker!r}", param="worker")
    if kind not in FAULTS:
        raise RequestError(f"fault: expected one of {list(FAULTS)}, got {kind!r}", param="fault")
    count = body.get("count")
    if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
        raise RequestError(f"count: expected a whole number from 1, got {count!r}", param="count")
    share = _number(body, "share", 1.0)
    retry_after = body.get("retry_after")
    return Fault(
        worker=str(worker),
        fault=kind,  # type: ignore[arg-type]
        share=1.0 if share is None else min(share, 1.0),
        count=count,
        retry_after=None if retry_after is None else str(retry_after),
        seconds=_number(body, "seconds", None),
    )


def _number(body: Mapping[str, Any], key: str, default: float | None) -> float | None:
    value = body.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise RequestError(f"{key}: expected a number from 0, got {value!r}", param=key)
    return float(value)
