"""Identities: UUIDv7 for rows that have a time, UUIDv8 for things that are their content.

A UUIDv7 is made before anything is sent, so feedback can name a decision at once, and a range
of times is a range of ids (the log's partitions depend on it). A content id is the same on
every gateway, so idempotent inserts need no coordination.
"""

from __future__ import annotations

import hmac
import os
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from typing import Any
from uuid import UUID

import uuid_utils

_TAG = 8  # hexadecimal digits of an episode id that are its MAC, the last ones
_HEAD = 36 - _TAG
_BLOCK = 64  # bytes: of SHA-256


def new_id() -> str:
    """A new UUIDv7 in its usual text form."""
    return str(uuid_utils.uuid7())


def id_at(moment: datetime, entropy: bytes | None = None) -> str:
    """A UUIDv7 for an event that happened at `moment`: imported rows, bounds of a time range.

    `entropy` (10 bytes) makes the id reproducible, so that importing twice inserts once.
    """
    millis = int(moment.timestamp() * 1000)
    tail = int.from_bytes((entropy or os.urandom(10))[:10], "big")
    value = (millis << 80) | (tail & ((1 << 80) - 1))
    return str(UUID(int=_stamp(value, version=7)))


def lowest_id(moment: datetime) -> str:
    """The smallest UUIDv7 of `moment`'s millisecond: an inclusive lower bound of a time range."""
    return str(UUID(int=max(int(moment.timestamp() * 1000), 0) << 80))  # before 1970 there is none


def time_of(identity: str) -> datetime:
    """When a UUIDv7 was made, to the millisecond, in UTC."""
    return datetime.fromtimestamp((UUID(identity).int >> 80) / 1000, tz=UTC)


def content_id(*parts: str) -> str:
    """A UUIDv8 that is a function of `parts` alone."""
    digest = sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).digest()
    return str(UUID(int=_stamp(int.from_bytes(digest[:16], "big"), version=8)))


def new_episode_id(secret: bytes) -> str:
    """A UUIDv7 whose last 32 bits are a MAC of the rest under the project's secret.

    A client that sends the id back is believed without a look-up; an id that does not verify
    is the client's own name for its conversation (`given_episode_id`).
    """
    head = str(uuid_utils.uuid7())[:_HEAD]
    return head + _tag(secret, head)


def given_episode_id(secret: bytes, given: str) -> str:
    """The episode id for what a client sent: our own id if it verifies, else one made from the name.

    Made under the project's secret, so two projects that use one name never share an episode.
    """
    if is_uuid(given):
        plain = str(UUID(given))
        if hmac.compare_digest(plain[_HEAD:], _tag(secret, plain[:_HEAD])):
            return plain
    return content_id(secret.hex(), given)


def mac(secret: bytes, message: bytes) -> str:
    """HMAC-SHA-256 (RFC 2104) in hexadecimal. The keyed halves are kept per secret: most of a short MAC's cost."""
    inner, outer = _keyed(secret)
    inside, outside = inner.copy(), outer.copy()
    inside.update(message)
    outside.update(inside.digest())
    digest: str = outside.hexdigest()
    return digest


@lru_cache(maxsize=1024)
def _keyed(secret: bytes) -> tuple[Any, Any]:
    key = (sha256(secret).digest() if len(secret) > _BLOCK else secret).ljust(_BLOCK, b"\0")
    return sha256(bytes(b ^ 0x36 for b in key)), sha256(bytes(b ^ 0x5C for b in key))


def is_uuid(text: str) -> bool:
    """Whether `text` is a UUID in its usual 36-character form."""
    if len(text) != 36:
        return False
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def _tag(secret: bytes, head: str) -> str:
    return mac(secret, head.encode())[:_TAG]


def _stamp(value: int, *, version: int) -> int:
    value = value & ~(0xF << 76) | (version << 76)
    return value & ~(0b11 << 62) | (0b10 << 62)
