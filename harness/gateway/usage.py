"""Usage as a client sees it: visible tokens by OpenAI's names, orchestration tokens apart, never counted twice."""

from __future__ import annotations

import msgspec

from pointsman.upstream.record import CallRecord
from pointsman.upstream.usage import Usage

_NULL = b',"usage":null'


def with_orchestration(body: bytes, tokens: tuple[int, int]) -> bytes:
    """A reply or chunk whose `usage` says, apart from the visible tokens, what orchestration took (in, out)."""
    fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    usage = msgspec.json.decode(fields["usage"]) if "usage" in fields else None
    if not isinstance(usage, dict):
        return body
    for group, name, count in (
        ("prompt_tokens_details", "orchestration_input_tokens", tokens[0]),
        ("completion_tokens_details", "orchestration_output_tokens", tokens[1]),
    ):
        details = usage.get(group)
        usage[group] = {**(details if isinstance(details, dict) else {}), name: count}
    fields["usage"] = msgspec.Raw(msgspec.json.encode(usage))
    return msgspec.json.encode(fields)


def with_null_usage(event: bytes) -> bytes:
    """A chunk without the key gets `"usage":null`, as OpenAI sends it on all chunks but the last when asked."""
    if b'"usage"' in event or not event.startswith(b"data:"):
        return event
    end = event.rfind(b"}")
    return event if end < 1 or event[end - 1 : end] == b"{" else event[:end] + _NULL + event[end:]


def usage_event(record: CallRecord, usage: Usage) -> bytes:
    """The chunk with which a stream tells its usage, where the worker sent none; `estimated` says so."""
    counts = {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "estimated": usage.estimated,
    }
    chunk = {
        "id": record.seen.completion_id or record.id,
        "object": "chat.completion.chunk",
        "created": int(record.started_at.timestamp()),
        "model": record.seen.model or record.worker.model,
        "choices": [],
        "usage": counts,
    }
    return b"data: " + msgspec.json.encode(chunk) + b"\n\n"
