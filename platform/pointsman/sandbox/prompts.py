"""Reading a chat request: its texts, its limits, what form of answer it asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pointsman.errors import RequestError


def messages_of(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages; raises `RequestError` where there are none."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(m, dict) for m in messages):
        raise RequestError("messages: expected a list of messages that is not empty", param="messages")
    return messages


def text_of(message: Mapping[str, Any]) -> str:
    """A message's text: the string, or its text parts by line."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = (part.get("text") for part in content if isinstance(part, dict))
    return "\n".join(part for part in parts if isinstance(part, str))


def last_user_text(messages: list[dict[str, Any]]) -> str:
    """What the person said last."""
    return next((text_of(m) for m in reversed(messages) if m.get("role") == "user"), "")


def system_text(messages: list[dict[str, Any]]) -> str:
    return "\n".join(text_of(m) for m in messages if m.get("role") in ("system", "developer"))


def has_images(messages: list[dict[str, Any]]) -> bool:
    contents = (m["content"] for m in messages if isinstance(m.get("content"), list))
    return any(isinstance(p, dict) and p.get("type") == "image_url" for parts in contents for p in parts)


def count_tokens(text: str) -> int:
    """A stand-in for a tokenizer: a token is four characters. The same for every worker."""
    return (len(text) + 3) // 4


def prompt_tokens(body: Mapping[str, Any]) -> int:
    """Of messages and tools, with four for each message's frame."""
    messages = messages_of(body)
    texts = sum(count_tokens(text_of(message)) + 4 for message in messages)
    return texts + (count_tokens(str(body["tools"])) if body.get("tools") else 0)


def token_limit(body: Mapping[str, Any]) -> int | None:
    """The most tokens that the answer may have."""
    for key in ("max_completion_tokens", "max_tokens"):
        value = body.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            if value < 1:
                raise RequestError(f"{key}: expected 1 or more, got {value}", param=key)
            return value
    return None


def stops_of(body: Mapping[str, Any]) -> list[str]:
    stop = body.get("stop")
    stops = [stop] if isinstance(stop, str) else stop if isinstance(stop, list) else []
    return [text for text in stops if isinstance(text, str) and text]


def wants_json(body: Mapping[str, Any], messages: list[dict[str, Any]]) -> bool:
    """By `response_format`, or because the system text says so."""
    form = body.get("response_format")
    if isinstance(form, dict) and form.get("type") in ("json_object", "json_schema"):
        return True
    system = system_text(messages).casefold()
    return "json" in system and any(word in system for word in ("answer", "respond", "reply", "return"))


def wants_bare_answer(messages: list[dict[str, Any]]) -> bool:
    system = system_text(messages).casefold()
    return any(phrase in system for phrase in ("only the answer", "answer only", "no explanation"))
