"""The sandbox's own record of the calls it got, so that tests can join them with Pointsman's log."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

MAX_ENTRIES = 20_000


@dataclass
class Served:
    """One call as the sandbox saw it. `status` ends as ok, cancelled, the fault's name or an HTTP status."""

    serial: int
    worker: str
    model: str
    stream: bool
    started: float
    prompt_hash: str
    request_id: str | None = None
    status: str = "running"


class ServedCalls:
    """The last calls, oldest first, bounded."""

    def __init__(self, max_entries: int = MAX_ENTRIES) -> None:
        self._entries: deque[Served] = deque(maxlen=max_entries)
        self._serial = 0

    def open(
        self, worker: str, *, model: str, stream: bool, started: float, prompt_hash: str, request_id: str | None
    ) -> Served:
        self._serial += 1
        entry = Served(self._serial, worker, model, stream, started, prompt_hash, request_id)
        self._entries.append(entry)
        return entry

    def listed(self, *, after: int = 0, limit: int = MAX_ENTRIES) -> list[dict[str, Any]]:
        """Up to `limit` entries whose serial is beyond `after`."""
        return [asdict(entry) for entry in islice((e for e in self._entries if e.serial > after), limit)]

    def clear(self) -> None:
        """Forgets all entries; serials go on."""
        self._entries.clear()
