"""A worker's request body from the client's: the same bytes, with only what must differ changed.

The client's JSON is held as its top-level fields in raw form, so numbers, key order and unknown
fields inside them reach the worker untouched.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from pointsman.pool import Worker

Fields = Mapping[str, msgspec.Raw]

_LIMITS = ("max_tokens", "max_completion_tokens")
_INCLUDE_USAGE = msgspec.Raw(b'{"include_usage":true}')


def worker_body(fields: Fields, worker: Worker, *, stream: bool) -> bytes:
    """The body for `worker`: its model id, its names for fields, usage asked for in streams."""
    body: dict[str, Any] = dict(fields)
    body["model"] = worker.model
    quirks = worker.quirks
    if (wanted := quirks.max_tokens_field) is not None:
        for name in _LIMITS:
            if name != wanted and name in body:
                value = body.pop(name)
                if bytes(value) != b"null":
                    body.setdefault(wanted, value)
    if stream and quirks.stream_usage:
        body["stream_options"] = _with_usage(body.get("stream_options"))
    if quirks.system_role is not None:
        body["messages"] = _with_role(body["messages"], quirks.system_role)
    return msgspec.json.encode(body)


def _with_usage(options: msgspec.Raw | None) -> Any:
    if options is None or bytes(options) in (b"null", b"{}"):
        return _INCLUDE_USAGE
    value = msgspec.json.decode(options)
    return {**value, "include_usage": True} if isinstance(value, dict) else options


def _with_role(messages: msgspec.Raw, role: str) -> Any:
    """`system` and `developer` under the one name the worker knows."""
    value = msgspec.json.decode(messages)
    return [
        {**message, "role": role} if message.get("role") in ("system", "developer") else message for message in value
    ]
