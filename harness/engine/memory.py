"""What is remembered between the requests of one episode, and what waits for a client's tool results.

    tool      a tool call of a worker and its result: later workflows of the episode need not repeat it
    context   a worker's own message list that outlives a request
    state     a run that waits for tool results; found by the ids of its tool calls

Everything belongs to a project and an episode: another project's ids find nothing. Bounded per episode, by
items and by bytes; the oldest go first. `LocalMemory` is for one process (rollouts, tests, `store: false`);
`harness.engine.postgres_memory` keeps it for all gateways.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

import msgspec

from pointsman.words import MemoryKind


class Bounds(msgspec.Struct, frozen=True):
    """The most that one episode may hold of each kind, and for how long."""

    items: int = 200
    bytes: int = 1_000_000
    state_bytes: int = 16_000_000
    keeps: timedelta = timedelta(days=7)
    state_keeps: timedelta = timedelta(hours=24)


class Item(msgspec.Struct, frozen=True):
    """One thing remembered. `workflow` is the run of the episode that it is from; ids are UUIDv7."""

    id: str
    project_id: str
    episode_id: str
    kind: MemoryKind
    content: dict[str, Any]
    created_at: datetime
    workflow: int = 0
    worker: str | None = None
    tool_call_ids: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return len(msgspec.json.encode(self.content))


class Sized(Protocol):
    """What bounds are held against."""

    @property
    def kind(self) -> MemoryKind: ...
    @property
    def size(self) -> int: ...
    @property
    def created_at(self) -> datetime: ...


S = TypeVar("S", bound=Sized)


class Memory(Protocol):
    """Where items are kept. Reads give the oldest first, expired ones never."""

    async def recall(self, project_id: str, episode_id: str, kinds: Sequence[MemoryKind]) -> list[Item]: ...

    async def keep(self, items: Sequence[Item]) -> None:
        """Adds items, then drops what is beyond the bounds."""
        ...

    async def waiting(self, project_id: str, tool_call_ids: Sequence[str]) -> Item | None:
        """The newest `state` of the project that waits for any of these tool calls."""
        ...

    async def forget(self, project_id: str, ids: Sequence[str]) -> None: ...


class LocalMemory:
    """In this process alone. `episodes` bounds how many are held; the least recently kept go first."""

    def __init__(self, bounds: Bounds | None = None, *, episodes: int = 2_000) -> None:
        self.bounds = bounds or Bounds()
        self._episodes = episodes
        self._held: dict[tuple[str, str], list[Item]] = {}

    async def recall(self, project_id: str, episode_id: str, kinds: Sequence[MemoryKind]) -> list[Item]:
        return [item for item in self._held.get((project_id, episode_id), ()) if item.kind in kinds]

    async def keep(self, items: Sequence[Item]) -> None:
        for item in items:
            place = (item.project_id, item.episode_id)
            held = [*self._held.pop(place, ()), item]
            self._held[place] = within(held, self.bounds, item.created_at)
        while len(self._held) > self._episodes:
            del self._held[next(iter(self._held))]

    async def waiting(self, project_id: str, tool_call_ids: Sequence[str]) -> Item | None:
        wanted = set(tool_call_ids)
        found = [
            item
            for (project, _), held in self._held.items()
            if project == project_id
            for item in held
            if item.kind == "state" and not wanted.isdisjoint(item.tool_call_ids)
        ]
        return max(found, key=lambda item: item.id, default=None)

    async def forget(self, project_id: str, ids: Sequence[str]) -> None:
        gone = set(ids)
        for (project, episode), held in list(self._held.items()):
            if project == project_id:
                self._held[project, episode] = [item for item in held if item.id not in gone]


def within(items: Sequence[S], bounds: Bounds, now: datetime) -> list[S]:
    """The items that may stay, in their order: the newest of each kind within its bounds, none expired.

    An item that is too large by itself goes alone; otherwise nothing older than what had to go stays.
    """
    room: dict[str, int] = {"state": bounds.state_bytes}
    count: dict[str, int] = {}
    full: set[str] = set()
    stays: list[S] = []
    for item in reversed(items):
        left = room.setdefault(item.kind, bounds.bytes) - item.size
        number = count.get(item.kind, 0) + 1
        if number > bounds.items or (left < 0 and number > 1):
            full.add(item.kind)
        if item.kind in full or left < 0 or expires_at(item, bounds) <= now:
            continue
        room[item.kind], count[item.kind] = left, number
        stays.append(item)
    return stays[::-1]


def expires_at(item: Sized, bounds: Bounds) -> datetime:
    return item.created_at + (bounds.state_keeps if item.kind == "state" else bounds.keeps)
