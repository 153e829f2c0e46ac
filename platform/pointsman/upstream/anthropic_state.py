"""What Anthropic's API says and chat completions cannot: how it is carried inside a chat request, and to whom.

The core speaks chat completions. These extra fields ride along, opaque to everything between the two ends:

| field | where | holds |
|---|---|---|
| `anthropic` | the request | the client's `thinking`, `top_k`, `metadata` … as they are; `betas`; `preamble` |
| `anthropic` | a tool, a system message | the tool's other fields; that the message keeps its place |
| `thinking_blocks` | an assistant message | thinking and redacted thinking, whole, in order |
| `block_layout` | an assistant message | the order of its blocks, where it is not thinking, text, tool calls |
| `cache_control` | parts, tool messages | as Anthropic's |
| `is_error` | a tool message | as Anthropic's |
| `tool_call_id` | an image of a user message | the tool result that the image is part of |

Thinking signatures stay with their worker. A worker's signature leaves the gateway sealed with the name of
its maker; only that maker gets it back, with the seal taken off. Blocks without a seal, or with another
worker's, are left out. Workers that are not Anthropic-native get none of these fields (`without_native`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec

from pointsman.errors import UpstreamError

NATIVE = "anthropic"
THINKING = "thinking_blocks"
LAYOUT = "block_layout"
CACHE = "cache_control"
IS_ERROR = "is_error"
OF_RESULT = "tool_call_id"
RESULT_BELOW = "(the result is in the next message)"
"""The text of a tool message whose result has no text: its images follow in a user message."""

_SEAL = re.compile(r"pm\.([0-9a-f]{16})\.", re.ASCII)
_BETA = re.compile(r"[a-z0-9][a-z0-9.-]{0,79}", re.ASCII)
MAX_BETAS = 20
_OPAQUE = {"thinking": "signature", "redacted_thinking": "data"}
_MARKS = (b'"thinking_blocks"', b'"cache_control"', b'"is_error"', b'"tool_call_id"', b'"block_layout"', b'"anthropic"')
_MESSAGE_FIELDS = (THINKING, LAYOUT, CACHE, IS_ERROR, NATIVE)
_PART_FIELDS = (CACHE, OF_RESULT)


def seal(block: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """A thinking block as it may leave the gateway; `origin` names its maker, "" leaves it bare."""
    name = _OPAQUE[block["type"]]
    value = block.get(name)
    if not origin or not isinstance(value, str) or not value:
        return dict(block)
    return {**block, name: f"pm.{_mark(origin)}.{value}"}


def unsealed(block: Any, origin: str) -> dict[str, Any] | None:
    """The block as its maker wrote it; None for whoever did not make it, and for thinking that nobody signed."""
    if not isinstance(block, dict) or block.get("type") not in tuple(_OPAQUE):
        return None
    name = _OPAQUE[block["type"]]
    value = block.get(name)
    if not isinstance(value, str) or not value:
        return None
    if not origin:
        return block
    match = _SEAL.match(value)
    return {**block, name: value[match.end() :]} if match and match.group(1) == _mark(origin) else None


def without_native(fields: Mapping[str, Any], *, reasoning: bool) -> dict[str, Any]:
    """Chat fields for a worker that is not Anthropic-native.

    `reasoning`: the worker takes `reasoning_effort`, so the client's wish for thinking is told that way.
    Fields that a client of chat completions sent are kept as they are, but for thinking blocks.
    """
    body = dict(fields)
    native = decoded(body.pop(NATIVE, None))
    if native is None:
        if THINKING.encode() in _bytes(body.get("messages")):
            body["messages"] = [_without(message, (THINKING, LAYOUT)) for message in decoded(body["messages"])]
        return body
    body["messages"] = _plain_messages(body.get("messages"))
    if isinstance(tools := decoded(body.get("tools")), list):
        body["tools"] = [_without(tool, (NATIVE,)) for tool in tools]
    effort = _effort(native) if isinstance(native, dict) else None
    if reasoning and effort and "reasoning_effort" not in body:
        body["reasoning_effort"] = effort
    return body


def betas_of(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """The beta names that the client's `anthropic-beta` header held: for the upstream's headers.

    Whatever is no plain name is left out: a client of chat completions may have written the field itself.
    """
    native = decoded(fields.get(NATIVE))
    betas = native.get("betas") if isinstance(native, dict) else None
    if not isinstance(betas, list):
        return ()
    return tuple(beta for beta in betas if isinstance(beta, str) and _BETA.fullmatch(beta))[:MAX_BETAS]


def decoded(value: Any) -> Any:
    """A field's value, whether it is held raw or as Python values. Raises `UpstreamError("bad_request")`."""
    if not isinstance(value, msgspec.Raw):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise refused(f"a field cannot be translated for this worker: {error}") from None


def refused(message: str) -> UpstreamError:
    """What this API cannot do: the request's fault, not the worker's."""
    return UpstreamError("bad_request", message, status=400, body=message)


def _mark(origin: str) -> str:
    return sha256(origin.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _bytes(value: Any) -> bytes:
    return bytes(value) if isinstance(value, msgspec.Raw) else msgspec.json.encode(value)


def _plain_messages(messages: Any) -> Any:
    content = _bytes(messages)
    if not any(mark in content for mark in _MARKS):
        return messages
    return [_plain(message) for message in decoded(messages)]


def _plain(message: Any) -> Any:
    if not isinstance(message, dict):
        return message
    plain = _without(message, _MESSAGE_FIELDS)
    content = plain.get("content")
    if isinstance(content, list):
        plain["content"] = [_without(part, _PART_FIELDS) for part in content]
    if message.get(IS_ERROR) is True and isinstance(content, str) and "error" not in content[:40].lower():
        plain["content"] = f"Error: {content}"  # chat completions have no flag for it
    return plain


def _without(value: Any, names: tuple[str, ...]) -> Any:
    return {key: item for key, item in value.items() if key not in names} if isinstance(value, dict) else value


def _effort(native: Mapping[str, Any]) -> str | None:
    """`reasoning_effort` for the client's wish: its effort, else the size of its thinking budget."""
    thinking, output = native.get("thinking"), native.get("output_config")
    kind = thinking.get("type") if isinstance(thinking, dict) else None
    effort = output.get("effort") if isinstance(output, dict) else None
    if kind == "disabled":
        return None
    if isinstance(effort, str):
        return effort if effort in ("low", "medium") else "high"
    if not isinstance(thinking, dict) or kind != "enabled":
        return None
    budget = thinking.get("budget_tokens")
    if not isinstance(budget, int):
        return None
    return "low" if budget < 4_096 else "medium" if budget < 16_384 else "high"
