"""A whole reply of Anthropic's Messages API as a chat completion; and what replies and streams share.

Anthropic counts input apart from what it read from or wrote to its cache; chat completions count all of it as
input, with the cached part named. Blocks that no chat client can show (a server tool's) are left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from pointsman.errors import UpstreamError
from pointsman.upstream.anthropic_state import LAYOUT, THINKING, seal

FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
_CODES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
}


def reply_to_chat(body: bytes, *, origin: str = "", created: int = 0) -> bytes:
    """The `chat.completion` for a message, or `{"error": …}` for an error body.

    `origin` is the worker's name, with which its thinking is sealed. Raises `UpstreamError("malformed")`.
    """
    message = parsed(body)
    if message.get("type") == "error" or "error" in message:
        return encoded(error_of(message))
    content = message.get("content")
    if not isinstance(content, list):
        raise UpstreamError("malformed", "the reply is no message: it has no content")
    reason = message.get("stop_reason")
    choice = {"index": 0, "message": _message(content, origin), **ending(reason, message.get("stop_sequence"))}
    return encoded(
        {
            "id": message.get("id"),
            "object": "chat.completion",
            "created": created,
            "model": message.get("model"),
            "choices": [choice],
            "usage": chat_usage(message.get("usage")),
        }
    )


def parsed(data: bytes) -> dict[str, Any]:
    """A JSON object; once more with the standard parser, which takes lone surrogates and NaN."""
    value: Any
    try:
        value = msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        try:
            value = json.loads(data.decode("utf-8", "replace"))
        except (ValueError, RecursionError) as error:
            raise UpstreamError("malformed", "the reply is not JSON") from error
    if not isinstance(value, dict):
        raise UpstreamError("malformed", "the reply is not a JSON object")
    return value


def encoded(value: Any) -> bytes:
    """JSON; half a surrogate pair stays an escape, for the reader after this one to deal with."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def ending(reason: Any, sequence: Any) -> dict[str, Any]:
    """The choice's words for how it ended: chat's, the worker's own, and which stop sequence it was."""
    said: dict[str, Any] = {"finish_reason": FINISH.get(reason, "stop") if isinstance(reason, str) else None}
    if isinstance(reason, str):
        said["native_finish_reason"] = reason
    if isinstance(sequence, str):
        said["stop_sequence"] = sequence
    return said


def chat_usage(usage: Any) -> dict[str, Any] | None:
    """Chat's `usage`: cached tokens are part of the input, thinking part of the output. None without counts."""
    if not isinstance(usage, dict):
        return None
    read, written = _count(usage, "cache_read_input_tokens"), _count(usage, "cache_creation_input_tokens")
    if not isinstance(usage.get("output_tokens"), int):
        return None
    given, answered = _count(usage, "input_tokens") + read + written, _count(usage, "output_tokens")
    counts: dict[str, Any] = {
        "prompt_tokens": given,
        "completion_tokens": answered,
        "total_tokens": given + answered,
        "prompt_tokens_details": {"cached_tokens": read, "cache_creation_tokens": written},
    }
    details = usage.get("output_tokens_details")
    if isinstance(details, dict) and isinstance(details.get("thinking_tokens"), int):
        counts["completion_tokens_details"] = {"reasoning_tokens": details["thinking_tokens"]}
    return counts


def error_of(event: Mapping[str, Any]) -> dict[str, Any]:
    """OpenAI's error object for Anthropic's, its `code` an HTTP status so that the fault is told rightly."""
    error = event.get("error")
    given: Mapping[str, Any] = error if isinstance(error, dict) else {"message": str(error or "unknown error")}
    kind = str(given.get("type") or "api_error")
    # An overloaded provider asks for patience, as a rate limit does: no status says so in OpenAI's words.
    code = _CODES.get(kind, kind)
    return {"error": {"message": str(given.get("message") or kind), "type": kind, "code": code}}


def _message(content: list[Any], origin: str) -> dict[str, Any]:
    texts: list[str] = []
    thinking: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    layout: list[str | int] = []
    for block in content:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text" and isinstance(block.get("text"), str) and block["text"]:
            texts.append(block["text"])
            layout.append(len(block["text"]))
        elif kind in ("thinking", "redacted_thinking"):
            thinking.append(seal(block, origin))
            layout.append("thinking")
        elif kind == "tool_use":
            calls.append(_call(block))
            layout.append("tool_use")
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts) if texts else None}
    if thinking:
        message["reasoning_content"] = "\n".join(str(t["thinking"]) for t in thinking if t.get("thinking"))
        message[THINKING] = thinking
    if calls:
        message["tool_calls"] = calls
    if not in_usual_order(layout):
        message[LAYOUT] = layout
    return message


def in_usual_order(layout: list[str | int]) -> bool:
    """Thinking, at most one text, tool calls: what a chat message says without a layout."""
    ranks = [0 if item == "thinking" else 2 if item == "tool_use" else 1 for item in layout]
    return ranks == sorted(ranks) and ranks.count(1) <= 1


def _call(block: Mapping[str, Any]) -> dict[str, Any]:
    arguments = encoded(block.get("input") or {}).decode()
    return {
        "id": block.get("id"),
        "type": "function",
        "function": {"name": block.get("name"), "arguments": arguments},
    }


def _count(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
