"""The opt-in cache of exact repeats: one process's memory of answers, for requests that would repeat them.

A request may be answered from here when it asks for one complete JSON answer at temperature 0 (or, with
`[cache] any_temperature`, at any) and no tool is offered or under way; streams never are. Its key is the
project, the body as canonical JSON without what cannot change an answer (`metadata`, `user`, `store`), the
hints that restrict who may answer, and the pool's hash: another key of the project shares it, another
project never does, and a change of any worker empties it in effect. An answer given from here is logged
as cached, costs nothing and is never learned from; that is the caller's part.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from pointsman.hashing import content_hash

_WITHOUT_EFFECT = frozenset({"metadata", "user", "store", "stream", "stream_options", "safety_identifier"})
_TOOLS = ("tools", "functions", "tool_choice", "function_call")
_ENTRY_BYTES = 500
"""What an entry takes beside its body, about."""


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """A whole JSON answer, who gave it, and the decision it came from."""

    body: bytes
    worker: str
    decision_id: str


class ResponseCache:
    """The least recently used leave first. `clock` gives seconds, monotonic."""

    def __init__(self, *, ttl: float, max_bytes: int, clock: Callable[[], float]) -> None:
        self.size = 0
        self._ttl = ttl
        self._max_bytes = max_bytes
        self._clock = clock
        self._entries: OrderedDict[str, tuple[CachedAnswer, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> CachedAnswer | None:
        """The answer under `key`, None where there is none or it is too old."""
        found = self._entries.get(key)
        if found is None:
            return None
        answer, until = found
        if self._clock() >= until:
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return answer

    def put(self, key: str, answer: CachedAnswer) -> None:
        """Keeps an answer, unless it alone is larger than an eighth of the cache."""
        if key in self._entries:
            self._drop(key)
        size = _size(answer)
        if size > self._max_bytes // 8:
            return
        while self._entries and self.size + size > self._max_bytes:
            self._drop(next(iter(self._entries)))
        self._entries[key] = (answer, self._clock() + self._ttl)
        self.size += size

    def clear(self) -> None:
        self._entries.clear()
        self.size = 0

    def _drop(self, key: str) -> None:
        answer, _ = self._entries.pop(key)
        self.size -= _size(answer)


def cache_key(
    fields: Mapping[str, msgspec.Raw],
    *,
    project_id: str,
    pool_hash: str,
    restrictions: Any = None,
    any_temperature: bool = False,
) -> str | None:
    """The key of a request's answer, None where it must not be cached.

    `fields` is the body without `metadata.pointsman`; `restrictions` the hints that limit who may answer
    (allowed, excluded, required tags, budget, quality), as plain values.
    """
    try:
        body = {name: msgspec.json.decode(raw) for name, raw in fields.items()}
    except msgspec.MsgspecError:
        return None
    if not _repeatable(body, any_temperature):
        return None
    kept = {name: value for name, value in body.items() if name not in _WITHOUT_EFFECT}
    return content_hash([project_id, pool_hash, restrictions, kept])


def _repeatable(body: Mapping[str, Any], any_temperature: bool) -> bool:
    if body.get("stream") or body.get("n") not in (None, 1) or any(body.get(name) for name in _TOOLS):
        return False
    temperature = body.get("temperature")
    zero = isinstance(temperature, int | float) and not isinstance(temperature, bool) and temperature == 0
    return (zero or any_temperature) and not any(_in_tool_loop(message) for message in body.get("messages") or ())


def _in_tool_loop(message: Any) -> bool:
    if not isinstance(message, dict):
        return False
    return message.get("role") in ("tool", "function") or bool(message.get("tool_calls"))


def _size(answer: CachedAnswer) -> int:
    return len(answer.body) + _ENTRY_BYTES
