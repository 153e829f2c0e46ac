"""The newest decisions of this process in memory, so that an id can be read and rated before it is in Postgres."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

MAX_ENTRIES = 1_000
MAX_BYTES = 16 * 1024 * 1024


@dataclass
class Entry:
    """The rows of one decision, as they went to the journal. `size` is what its texts take, about, in bytes."""

    project_id: str
    episode_id: str | None
    size: int
    decision: dict[str, Any]
    request: dict[str, Any] | None = None
    calls: list[dict[str, Any]] = field(default_factory=list)
    outcome: dict[str, Any] | None = None
    feedback: list[dict[str, Any]] = field(default_factory=list)


class Recent:
    """Bounded by entries and by the bytes of requests, answers and feedback; the oldest go first."""

    def __init__(self, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES) -> None:
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._by_completion: dict[tuple[str, str], str] = {}
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._bytes = 0

    def add(self, decision_id: str, entry: Entry) -> None:
        self._entries[decision_id] = entry
        self._bytes += entry.size
        self._shrink()

    def end(self, decision_id: str, calls: list[dict[str, Any]], outcome: dict[str, Any], size: int) -> None:
        """The calls and the outcome of a decision; `size` is what the answers take."""
        entry = self._entries.get(decision_id)
        if entry is None:
            return
        entry.calls, entry.outcome = calls, outcome
        for call in calls:
            if completion_id := call.get("completion_id"):
                self._by_completion[entry.project_id, completion_id] = decision_id
        self._grow(entry, size)

    def rate(self, decision_id: str, row: dict[str, Any], size: int) -> None:
        """A feedback on a decision, if that is still here."""
        entry = self._entries.get(decision_id)
        if entry is not None:
            entry.feedback.append(row)
            self._grow(entry, size)

    def get(self, decision_id: str) -> Entry | None:
        return self._entries.get(decision_id)

    def of_request(self, request_id: str) -> list[Entry]:
        """All decisions of one request, the oldest first: a team's tree."""
        return [entry for entry in self._entries.values() if entry.decision.get("request_id") == request_id]

    def by_completion(self, project_id: str, completion_id: str) -> str | None:
        """The decision whose answer carried this completion id."""
        return self._by_completion.get((project_id, completion_id))

    def has_episode(self, project_id: str, episode_id: str) -> bool:
        return any(
            entry.episode_id == episode_id and entry.project_id == project_id for entry in self._entries.values()
        )

    def _grow(self, entry: Entry, size: int) -> None:
        entry.size += size
        self._bytes += size
        self._shrink()

    def _shrink(self) -> None:
        while len(self._entries) > self._max_entries or self._bytes > self._max_bytes:
            decision_id, old = self._entries.popitem(last=False)
            self._bytes -= old.size
            for call in old.calls:
                key = (old.project_id, call.get("completion_id") or "")
                if self._by_completion.get(key) == decision_id:  # a worker may give one id twice
                    del self._by_completion[key]
