"""A reply of `/v1/embeddings`, read for the log: what it used. The vectors pass through as they came."""

from __future__ import annotations

from typing import Any

import msgspec

from pointsman.database.clean import clean_text
from pointsman.errors import UpstreamError
from pointsman.upstream.faults import from_error_object
from pointsman.upstream.seen import Seen
from pointsman.upstream.usage import Usage


class _Reply(msgspec.Struct):
    data: list[msgspec.Raw] | None = None
    usage: Any = None
    model: Any = None
    error: Any = None


_decode = msgspec.json.Decoder(_Reply).decode


def read_embeddings(seen: Seen, body: bytes) -> None:
    """Notes model and usage. Raises `UpstreamError` where the reply is an error or has no vectors."""
    try:
        reply = _decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise UpstreamError("malformed", "the reply is not the JSON of embeddings") from error
    if reply.error is not None:
        raise from_error_object(reply.error)
    if not reply.data:
        raise UpstreamError("malformed", "the reply has no embeddings")
    if isinstance(reply.model, str):
        seen.model = clean_text(reply.model)[:200]
    if isinstance(reply.usage, dict):
        seen.usage = Usage.of({**reply.usage, "completion_tokens": 0})
