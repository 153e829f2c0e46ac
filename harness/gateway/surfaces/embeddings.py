"""`POST /v1/embeddings`: a request read and checked. Its input is what is logged as the ask.

Vectors of two models cannot be compared, so nothing is ever drawn or fallen back to here: `pointsman` means
the first worker of the file that makes embeddings, whether it is well or not, and another must be named.
"""

from __future__ import annotations

from typing import Any

from harness.gateway.access import Headers
from harness.gateway.ask import MAX_ASK, Conversation
from harness.gateway.bounds import check_json
from harness.gateway.fields import Fields, decoded, may_store, metadata_of, model_name, read_fields, strip_hints
from harness.gateway.guard import refuse_addresses
from harness.gateway.hints import read_hints
from harness.gateway.request import ChatRequest
from pointsman.errors import RequestError
from pointsman.upstream.usage import CHARS_PER_TOKEN

OPENING = "\x1eembeddings\x1e"
"""Before the input where a conversation has its opening: never that of a chat."""


def parse_embeddings(body: bytes, headers: Headers) -> ChatRequest:
    """Raises `RequestError` (400) that says what is wrong."""
    check_json(body)
    fields = read_fields(body)
    refuse_addresses(fields)
    model = model_name(fields)
    texts, tokens = _input(fields)
    metadata = metadata_of(fields)
    hints = read_hints(metadata, headers)
    if metadata is not None and "pointsman" in metadata:
        strip_hints(fields)
    return ChatRequest(
        fields=fields,
        model=model,
        stream=False,
        wants_usage=False,
        store=may_store(fields),
        conversation=_conversation("\n".join(texts)),
        hints=hints,
        tools=False,
        json_schema=False,
        logprobs=False,
        prompt_tokens=tokens + sum(map(len, texts)) // CHARS_PER_TOKEN,
        output_tokens=0,
        size=len(body),
        embeddings=True,
    )


def _input(fields: Fields) -> tuple[list[str], int]:
    """The texts of `input`, and how many tokens are given as numbers: a text, texts, tokens, lists of tokens."""
    value = decoded(fields, "input")
    items: list[Any] = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    texts = [item for item in items if isinstance(item, str)]
    if texts and len(texts) == len(items) and all(texts):
        return texts, 0
    lists = items if items and all(isinstance(item, list) for item in items) else [items]
    if not all(numbers and all(_is_token(number) for number in numbers) for numbers in lists):
        raise RequestError("input: expected a text, a list of texts, or lists of tokens, none empty", param="input")
    return [], sum(len(numbers) for numbers in lists)


def _is_token(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _conversation(text: str) -> Conversation:
    return Conversation(
        ask=text[:MAX_ASK],
        context="",
        images=0,
        audio=False,
        in_tool_loop=False,
        media_bytes=0,
        tool_call_ids=(),
        has_history=False,
        opening=OPENING + text,
    )
