"""Anthropic's messages and content blocks as chat messages.

One user message may hold tool results and text: the results become tool messages and come first, since chat
completions want them straight after the calls; what else it holds becomes a user message after them. A tool
message holds text only (several texts of a result are joined by line ends), so images of a result lead that
user message, marked with the result's id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from pointsman.errors import RequestError
from pointsman.upstream.anthropic_reply import in_usual_order
from pointsman.upstream.anthropic_state import (
    CACHE,
    IS_ERROR,
    LAYOUT,
    NATIVE,
    OF_RESULT,
    RESULT_BELOW,
    THINKING,
)

T = TypeVar("T")
Message = dict[str, Any]


def expect(value: Any, kind: type[T], path: str, expected: str) -> T:
    """`value`, if it is of that kind. Raises a 400 that names the parameter."""
    if not isinstance(value, kind):
        raise RequestError(f"{path}: expected {expected}", param=path)
    return value


def chat_messages(value: Any) -> list[Message]:
    """The chat messages for `messages`. Raises `RequestError` that names what is wrong."""
    messages = expect(value, list, "messages", "a list with at least one message")
    if not messages:
        raise RequestError("messages: expected a list with at least one message", param="messages")
    made: list[Message] = []
    for index, message in enumerate(messages):
        path = f"messages[{index}]"
        role = expect(message, dict, path, "an object with role and content").get("role")
        content = message.get("content")
        if not isinstance(content, str | list):
            raise RequestError(f"{path}.content: expected a text or a list of blocks", param=f"{path}.content")
        if role == "user":
            made += _user(content, path)
        elif role == "assistant":
            made += _assistant(content, path)
        elif role == "system":
            # The mark lets an Anthropic-native worker have it where it stands.
            made.append({"role": "system", "content": _parts(content, path), NATIVE: {}})
        else:
            raise RequestError(f"{path}.role: expected user, assistant or system", param=f"{path}.role")
    return made


def _user(content: str | list[Any], path: str) -> list[Message]:
    if isinstance(content, str):
        return [{"role": "user", "content": content}]
    results: list[Message] = []
    images: list[Message] = []
    parts: list[Message] = []
    for index, block in enumerate(content):
        where = f"{path}.content[{index}]"
        if expect(block, dict, where, "a content block").get("type") == "tool_result":
            message, shown = _result(block, where)
            results.append(message)
            images += shown
        else:
            parts.append(_part(block, where))
    if images or parts or not results:
        results.append({"role": "user", "content": [*images, *parts]})
    return results


def _result(block: Mapping[str, Any], path: str) -> tuple[Message, list[Message]]:
    """The tool message for a result, and the parts that only a user message can hold."""
    identity = expect(block.get("tool_use_id"), str, f"{path}.tool_use_id", "the id of a tool_use block")
    content = block.get("content")
    parts = [] if content is None else _parts(content, path)
    held = [{"type": "text", "text": parts}] if isinstance(parts, str) else parts
    texts = [part["text"] for part in held if part["type"] == "text"]
    others = [{**part, OF_RESULT: identity} for part in held if part["type"] != "text"]
    text = "\n".join(texts) or (RESULT_BELOW if others else "")
    message: Message = {"role": "tool", "tool_call_id": identity, "content": text}
    if block.get("is_error") is True:
        message[IS_ERROR] = True
    if block.get(CACHE):
        message[CACHE] = block[CACHE]
    return message, others


def _assistant(content: str | list[Any], path: str) -> list[Message]:
    """One assistant message; none for a turn without a block."""
    if isinstance(content, str):
        return [{"role": "assistant", "content": content}]
    texts: list[str] = []
    calls: list[Message] = []
    thinking: list[Message] = []
    layout: list[str | int] = []
    for index, block in enumerate(content):
        where = f"{path}.content[{index}]"
        kind = expect(block, dict, where, "a content block").get("type")
        if kind == "text":
            texts.append(expect(block.get("text"), str, f"{where}.text", "a text"))
            layout.append(len(texts[-1]))
        elif kind == "tool_use":
            calls.append(_call(block, where))
            layout.append("tool_use")
        elif kind in ("thinking", "redacted_thinking"):
            thinking.append(_thinking(block, where))
            layout.append("thinking")
        else:
            raise _wrong_kind(where, "text, tool_use, thinking or redacted_thinking")
    if not layout:
        return []
    message: Message = {"role": "assistant", "content": "".join(texts) if texts else None}
    if calls:
        message["tool_calls"] = calls
    if thinking:
        message[THINKING] = thinking
    if not in_usual_order(layout):
        message[LAYOUT] = layout
    return [message]


def _call(block: Mapping[str, Any], path: str) -> Message:
    given = expect(block.get("input", {}), dict, f"{path}.input", "an object")
    return {
        "id": expect(block.get("id"), str, f"{path}.id", "a text"),
        "type": "function",
        "function": {
            "name": expect(block.get("name"), str, f"{path}.name", "a text"),
            "arguments": msgspec.json.encode(given).decode(),
        },
    }


def _thinking(block: Mapping[str, Any], path: str) -> Message:
    if block["type"] == "redacted_thinking":
        return {"type": "redacted_thinking", "data": expect(block.get("data"), str, f"{path}.data", "a text")}
    return {
        "type": "thinking",
        "thinking": expect(block.get("thinking"), str, f"{path}.thinking", "a text"),
        "signature": expect(block.get("signature", ""), str, f"{path}.signature", "a text"),
    }


def _parts(content: Any, path: str) -> str | list[Message]:
    if isinstance(content, str):
        return content
    blocks = expect(content, list, f"{path}.content", "a text or a list of blocks")
    return [_part(block, f"{path}.content[{index}]") for index, block in enumerate(blocks)]


def _part(block: Any, path: str) -> Message:
    kind = expect(block, dict, path, "a content block").get("type")
    if kind == "text":
        part: Message = {"type": "text", "text": expect(block.get("text"), str, f"{path}.text", "a text")}
    elif kind == "image":
        part = {"type": "image_url", "image_url": {"url": _url(block.get("source"), f"{path}.source")}}
    elif kind == "document":
        part = _document(block, path)
    else:
        raise _wrong_kind(path, "text, image, document or tool_result")
    if block.get(CACHE):
        part[CACHE] = block[CACHE]
    return part


def _url(value: Any, path: str) -> str:
    source = expect(value, dict, path, "an object")
    if source.get("type") == "url":
        return expect(source.get("url"), str, f"{path}.url", "a text")
    if source.get("type") != "base64":
        raise RequestError(f"{path}.type: expected base64 or url", param=f"{path}.type")
    media_type = expect(source.get("media_type"), str, f"{path}.media_type", "a text, such as image/png")
    return f"data:{media_type};base64,{expect(source.get('data'), str, f'{path}.data', 'a text')}"


def _document(block: Mapping[str, Any], path: str) -> Message:
    """A PDF as a file part; a plain text as a text, under its title."""
    source = expect(block.get("source"), dict, f"{path}.source", "an object")
    title = expect(block.get("title") or "", str, f"{path}.title", "a text")
    if source.get("type") == "text":
        text = expect(source.get("data"), str, f"{path}.source.data", "a text")
        return {"type": "text", "text": f"{title}\n\n{text}" if title else text}
    if source.get("type") != "base64":
        raise RequestError(f"{path}.source.type: expected base64 or text", param=f"{path}.source.type")
    data = _url(source, f"{path}.source")
    return {"type": "file", "file": {"filename": title or "document.pdf", "file_data": data}}


def _wrong_kind(path: str, expected: str) -> RequestError:
    return RequestError(f"{path}.type: expected {expected}", param=f"{path}.type")
