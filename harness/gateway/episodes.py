"""Which conversation a request belongs to, and which worker issued the tool calls it answers.

Given by the client; else found by the ids of the tool calls that are answered, or by an HMAC of what
stays the same through a conversation, in a local cache and then in Postgres; else new. A request
without history begins a conversation and needs no look-up.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from harness.gateway.access import Caller
from harness.gateway.ask import Conversation
from pointsman.ids import given_episode_id, mac, new_episode_id
from pointsman.words import EpisodeSource

CACHE_SIZE = 20_000

K = TypeVar("K")
V = TypeVar("V")

Lookup = Callable[[str, str], Awaitable[tuple[str, str | None] | None]]
"""(project id, fingerprint) → (episode id, worker of its newest call), from Postgres; None: unknown."""


class Episode(msgspec.Struct, frozen=True):
    """`worker` is who answered last in it, where that is known; `known` whether its row was written before."""

    id: str
    source: EpisodeSource
    fingerprint: str | None = None
    given: str | None = None
    worker: str | None = None
    known: bool = False


class _Issued(msgspec.Struct, frozen=True):
    """Where a tool call's id came from; `shared` where several conversations have used it."""

    episode: str
    worker: str
    fingerprint: str
    shared: bool


class Episodes:
    """The local cache of one gateway process."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._by_opening: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._by_tool_call: OrderedDict[tuple[str, str], _Issued] = OrderedDict()
        self._workers: OrderedDict[str, str] = OrderedDict()

    async def find(self, caller: Caller, conversation: Conversation, given: str | None) -> Episode:
        """The request's episode."""
        mark = fingerprint(caller.secret, conversation.opening)
        if given is not None:
            identity = given_episode_id(caller.secret, given)
            issued = self._issued(caller, conversation, mark)
            worker = issued.worker if issued and issued.episode == identity else self._workers.get(identity)
            if worker is None and conversation.in_tool_loop:
                found = await self._lookup(caller.project_id, mark)
                worker = found[1] if found and found[0] == identity else None
            return Episode(identity, "given", mark, given, worker, known=identity in self._workers)
        if not conversation.has_history:
            return Episode(new_episode_id(caller.secret), "new", mark)
        return await self._inferred(caller, conversation, mark)

    def answered(self, caller: Caller, episode: Episode, worker: str, tool_call_ids: list[str]) -> None:
        """Remembers who answered, and for which tool calls results will come back."""
        mark = episode.fingerprint or ""
        _put(self._by_opening, (caller.project_id, mark), episode.id)
        _put(self._workers, episode.id, worker)
        for identity in tool_call_ids:
            key = (caller.project_id, identity)
            before = self._by_tool_call.get(key)
            # Some workers count: `call_0` in every conversation names none.
            shared = before is not None and (before.shared or before.episode != episode.id)
            issued = _Issued(episode.id, worker, mark, shared)
            _put(self._by_tool_call, key, issued)
            _put(self._by_tool_call, (caller.project_id, f"{identity}\x1f{mark}"), issued)

    async def _inferred(self, caller: Caller, conversation: Conversation, mark: str) -> Episode:
        if (issued := self._issued(caller, conversation, mark)) is not None:
            return Episode(issued.episode, "inferred", mark, worker=issued.worker, known=True)
        cached = self._by_opening.get((caller.project_id, mark))
        if cached is not None:
            return Episode(cached, "inferred", mark, worker=self._workers.get(cached), known=True)
        stored = await self._lookup(caller.project_id, mark)
        if stored is not None:
            return Episode(stored[0], "inferred", mark, worker=stored[1], known=True)
        return Episode(new_episode_id(caller.secret), "new", mark)

    def _issued(self, caller: Caller, conversation: Conversation, mark: str) -> _Issued | None:
        """Who issued the tool calls that are answered: by id and opening, else by an id of one conversation only."""
        for identity in conversation.tool_call_ids:
            found = self._by_tool_call.get((caller.project_id, f"{identity}\x1f{mark}"))
            if found is not None:
                return found
            found = self._by_tool_call.get((caller.project_id, identity))
            if found is not None and not found.shared:
                return found
        return None


def fingerprint(secret: bytes, opening: str) -> str:
    """HMAC-SHA-256 of a conversation's system text and first user message, under the project's secret."""
    return mac(secret, opening.encode("utf-8", "surrogatepass"))


def _put(cache: OrderedDict[K, V], key: K, value: V) -> None:
    cache[key] = value
    cache.move_to_end(key)
    if len(cache) > CACHE_SIZE:
        cache.popitem(last=False)
