"""The bytes of a replay worker's OpenAI-shaped replies: completion, stream, list of models, error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from pointsman.replay.answers import Answer

CHUNK_CHARS = 200  # a recorded answer has no token boundaries; a stream cuts it by length
CREATED = 0  # a recorded answer has no time of its own, and equal requests get equal bytes


def completion(identity: str, model: str, answer: Answer) -> bytes:
    """A whole chat completion. `usage` is there only where both token counts were recorded."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": answer.text},
        "finish_reason": "stop",
    }
    body = {"id": identity, "object": "chat.completion", "created": CREATED, "model": model, "choices": [choice]}
    if usage := _usage(answer):
        body["usage"] = usage
    return msgspec.json.encode(body)


def stream(identity: str, model: str, answer: Answer, *, include_usage: bool) -> Iterator[bytes]:
    """The same completion as server-sent events, ended by `[DONE]`."""
    head = {"id": identity, "object": "chat.completion.chunk", "created": CREATED, "model": model}
    yield _event({**head, "choices": [_delta({"role": "assistant", "content": ""})]})
    for start in range(0, len(answer.text), CHUNK_CHARS):
        yield _event({**head, "choices": [_delta({"content": answer.text[start : start + CHUNK_CHARS]})]})
    yield _event({**head, "choices": [_delta({}, finish_reason="stop")]})
    usage = _usage(answer)
    if include_usage and usage:
        yield _event({**head, "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def model_list(models: list[str]) -> bytes:
    data = [{"id": name, "object": "model", "created": CREATED, "owned_by": "replay"} for name in models]
    return msgspec.json.encode({"object": "list", "data": data})


def error_body(message: str, *, type: str, code: str | None, param: str | None) -> bytes:
    return msgspec.json.encode({"error": {"message": message, "type": type, "code": code, "param": param}})


def _usage(answer: Answer) -> dict[str, int] | None:
    if answer.input_tokens is None or answer.output_tokens is None:
        return None
    return {
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": answer.output_tokens,
        "total_tokens": answer.input_tokens + answer.output_tokens,
    }


def _delta(delta: dict[str, str], finish_reason: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": finish_reason}


def _event(body: dict[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(body) + b"\n\n"
