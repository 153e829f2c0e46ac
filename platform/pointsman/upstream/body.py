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
_SYSTEM = ("system", "developer")
_INCLUDE_USAGE = msgspec.Raw(b'{"include_usage":true}')


def worker_body(fields: Fields, worker: Worker, *, stream: bool) -> bytes:
    """The body for `worker`: its model id, its names for fields, usage asked for in streams."""
    body: dict[str, Any] = dict(fields)
    body["model"] = worker.model
    quirks = worker.quirks
    if quirks.max_tokens_field is not None:
        _rename_limit(body, quirks.max_tokens_field)
    if not quirks.stream_usage:
        body.pop("stream_options", None)  # a worker that gives no usage may refuse to be asked for it
    elif stream:
        body["stream_options"] = _with_usage(body.get("stream_options"))
    if quirks.system_role is not None:
        body["messages"] = _with_role(body["messages"], quirks.system_role)
    return msgspec.json.encode(body)


def _rename_limit(body: dict[str, Any], wanted: str) -> None:
    """The client's limit of output tokens under the one name that the worker knows; null says nothing."""
    given = {name: body.pop(name) for name in _LIMITS if name in body}
    values = [given.pop(wanted, None), *given.values()]
    for value in values:
        if value is not None and bytes(value) != b"null":
            body[wanted] = value
            return


def _with_usage(options: msgspec.Raw | None) -> Any:
    if options is None or bytes(options) in (b"null", b"{}"):
        return _INCLUDE_USAGE
    value = msgspec.json.decode(options)
    return {**value, "include_usage": True} if isinstance(value, dict) else options


def _with_role(messages: msgspec.Raw, role: str) -> Any:
    """`system` and `developer` under the one name the worker knows; all else keeps its bytes."""
    content = bytes(messages)
    if b"system" not in content and b"developer" not in content and b"\\u" not in content:
        return messages
    value = msgspec.json.decode(content, type=list[dict[str, msgspec.Raw]])
    named: list[dict[str, Any]] = [
        {**message, "role": role} if msgspec.json.decode(message["role"]) in _SYSTEM else message for message in value
    ]
    return named
