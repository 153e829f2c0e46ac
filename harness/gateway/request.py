"""One chat request, read and checked: raw fields for the worker, and what routing needs to know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from harness.gateway.ask import Conversation, read_conversation
from harness.gateway.bounds import check_json
from harness.gateway.guard import refuse_addresses
from harness.gateway.hints import Hints, read_hints
from pointsman.errors import RequestError
from pointsman.upstream.usage import CHARS_PER_TOKEN

Fields = dict[str, msgspec.Raw]

_PROMPT = ("messages", "tools", "functions", "response_format")
IMAGE_TOKENS = 1_000
"""What an image is taken to cost; its bytes say nothing of that."""

_fields = msgspec.json.Decoder(Fields).decode
_any = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """`fields` is what goes to a worker, `metadata.pointsman` taken out; `size` is the body's length in bytes.

    `prompt_tokens` is an estimate; `output_tokens` the most the client wants back, 0 where it did not say.
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


def parse_chat(body: bytes, headers: list[tuple[bytes, bytes]]) -> ChatRequest:
    """Reads a body of `/v1/chat/completions`. Raises `RequestError` (400) that says what is wrong."""
    check_json(body)
    fields = _parse(body)
    refuse_addresses(fields)
    model = _decoded(fields, "model")
    if not isinstance(model, str) or not model:
        raise RequestError('model: expected a text, such as "pointsman"', param="model")
    messages = _messages(fields)
    stream = _flag(fields, "stream")
    metadata = _metadata(fields)
    hints = read_hints(metadata, headers)
    if metadata is not None and "pointsman" in metadata:
        _strip_hints(fields)
    conversation = read_conversation(messages)
    return ChatRequest(
        fields=fields,
        model=model,
        stream=stream,
        wants_usage=stream and _wants_usage(fields),
        store="store" not in fields or _decoded(fields, "store") is not False,
        conversation=conversation,
        hints=hints,
        tools=_has_tools(fields),
        json_schema=_has_schema(fields),
        logprobs=_decoded(fields, "logprobs") is True,
        prompt_tokens=_prompt_tokens(fields, conversation),
        output_tokens=_output_tokens(fields),
        size=len(body),
    )


def _parse(body: bytes) -> Fields:
    try:
        return _fields(body)
    except msgspec.ValidationError:
        raise RequestError("the body must be a JSON object") from None
    except msgspec.DecodeError as error:
        raise RequestError(f"the body is not valid JSON: {error}") from None


def _decoded(fields: Fields, name: str) -> Any:
    raw = fields.get(name)
    if raw is None:
        return None
    try:
        return _any(raw)
    except msgspec.MsgspecError as error:
        raise RequestError(f"{name}: not valid JSON here: {error}", param=name) from None


def _messages(fields: Fields) -> list[dict[str, Any]]:
    messages = _decoded(fields, "messages")
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


def _flag(fields: Fields, name: str) -> bool:
    value = _decoded(fields, name)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise RequestError(f"{name}: expected true or false", param=name)


def _metadata(fields: Fields) -> dict[str, Any] | None:
    if "metadata" not in fields:
        return None
    value = _decoded(fields, "metadata")
    if value is not None and not isinstance(value, dict):
        raise RequestError("metadata: expected an object", param="metadata")
    return value


def _strip_hints(fields: Fields) -> None:
    """Takes `metadata.pointsman` out, and `metadata` with it when nothing else is in it."""
    rest = {name: value for name, value in _fields(fields["metadata"]).items() if name != "pointsman"}
    if rest:
        fields["metadata"] = msgspec.Raw(msgspec.json.encode(rest))
    else:
        del fields["metadata"]


def _wants_usage(fields: Fields) -> bool:
    options = _decoded(fields, "stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def _has_tools(fields: Fields) -> bool:
    for name in ("tools", "functions"):
        raw = fields.get(name)
        if raw is not None and bytes(raw) != b"null" and bytes(raw)[1:-1].strip():
            return True
    return False


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
        value = _decoded(fields, name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return min(value, 10_000_000)
    return 0
