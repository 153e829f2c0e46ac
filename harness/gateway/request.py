"""One chat request, read and checked: raw fields for the worker, and what routing needs to know."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.gateway.ask import Conversation, read_conversation
from harness.gateway.bounds import check_json
from harness.gateway.fields import (
    Fields,
    decoded,
    flag,
    may_store,
    metadata_of,
    model_name,
    read_fields,
    strip_hints,
)
from harness.gateway.guard import refuse_addresses
from harness.gateway.hints import Hints, read_hints
from pointsman.errors import RequestError
from pointsman.upstream.usage import CHARS_PER_TOKEN

_PROMPT = ("messages", "tools", "functions", "response_format")
IMAGE_TOKENS = 1_000
"""What an image is taken to cost; its bytes say nothing of that."""


class ChatRequest(msgspec.Struct, frozen=True):
    """`fields` is what goes to a worker, `metadata.pointsman` taken out; `size` is the body's length in bytes.

    `prompt_tokens` is an estimate; `output_tokens` the most the client wants back, 0 where it did not say.
    `several` answers are wanted (`n`); `functions` are the API's old tools. `embeddings`: it is no chat but a
    request of `/v1/embeddings`, whose conversation is its input.
    """

    fields: Fields
    model: str
    stream: bool
    wants_usage: bool
    store: bool
    conversation: Conversation
    hints: Hints
    tools: bool
    json_schema: bool
    logprobs: bool
    prompt_tokens: int
    output_tokens: int
    size: int
    several: bool = False
    functions: bool = False
    embeddings: bool = False


def parse_chat(body: bytes, headers: list[tuple[bytes, bytes]]) -> ChatRequest:
    """Reads a body of `/v1/chat/completions`. Raises `RequestError` (400) that says what is wrong."""
    check_json(body)
    fields = read_fields(body)
    refuse_addresses(fields)
    model = model_name(fields)
    messages = _messages(fields)
    stream = flag(fields, "stream")
    metadata = metadata_of(fields)
    hints = read_hints(metadata, headers)
    if metadata is not None and "pointsman" in metadata:
        strip_hints(fields)
    conversation = read_conversation(messages)
    return ChatRequest(
        fields=fields,
        model=model,
        stream=stream,
        wants_usage=stream and _wants_usage(fields),
        store=may_store(fields),
        conversation=conversation,
        hints=hints,
        tools=_has_any(fields, "tools") or _has_any(fields, "functions"),
        json_schema=_has_schema(fields),
        logprobs=decoded(fields, "logprobs") is True,
        prompt_tokens=_prompt_tokens(fields, conversation),
        output_tokens=_output_tokens(fields),
        size=len(body),
        several="n" in fields and decoded(fields, "n") not in (None, 1),
        functions=_has_any(fields, "functions"),
    )


def _messages(fields: Fields) -> list[dict[str, Any]]:
    messages = decoded(fields, "messages")
    if not isinstance(messages, list) or not messages:
        raise RequestError("messages: expected a list with at least one message", param="messages")
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise RequestError(f"messages[{index}]: expected an object with a role", param=f"messages[{index}]")
        content = message.get("content")
        if content is not None and not isinstance(content, str | list):
            raise RequestError(
                f"messages[{index}].content: expected a text, a list of parts, or null",
                param=f"messages[{index}].content",
            )
    return messages


def _wants_usage(fields: Fields) -> bool:
    options = decoded(fields, "stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def _has_any(fields: Fields, name: str) -> bool:
    """Whether a list of tools has any in it."""
    raw = fields.get(name)
    return raw is not None and bytes(raw) != b"null" and bool(bytes(raw)[1:-1].strip())


def _has_schema(fields: Fields) -> bool:
    raw = fields.get("response_format")
    return raw is not None and b"json_schema" in bytes(raw)


def _prompt_tokens(fields: Fields, conversation: Conversation) -> int:
    """An estimate from the bytes of what a worker reads, images apart."""
    size = sum(memoryview(fields[name]).nbytes for name in _PROMPT if name in fields)
    text = max(size - conversation.media_bytes, 0)
    return text // CHARS_PER_TOKEN + conversation.images * IMAGE_TOKENS


def _output_tokens(fields: Fields) -> int:
    for name in ("max_completion_tokens", "max_tokens"):
        value = decoded(fields, name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return min(value, 10_000_000)
    return 0
