"""Requests and answers in the shapes in which systems log them, as messages and a completion of OpenAI's form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pointsman.intake.values import from_json

Message = dict[str, Any]
_CONVERSATION_KEYS = ("messages", "input", "prompt")
_TEXT_KEYS = ("text", "value", "content")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model gave back: text, tool calls, why it stopped."""

    text: str | None = None
    tool_calls: Any | None = None
    finish_reason: str | None = None


def messages_of(value: Any) -> list[Message]:
    """The messages of a list, of an object that holds them (with its `system`), or of a mere text; none if unknown."""
    value = from_json(value)
    if isinstance(value, str):
        return [{"role": "user", "content": value}] if value else []
    if isinstance(value, Mapping):
        if "role" in value:
            return [_message(value)]
        inner = next((value[key] for key in _CONVERSATION_KEYS if value.get(key)), None)
        made = messages_of(inner) if inner is not None else []
        system = value.get("system")
        return [{"role": "system", "content": text_of(system)}, *made] if made and system else made
    if isinstance(value, list):
        return [_message(item) for item in map(from_json, value) if isinstance(item, Mapping) and "role" in item]
    return []


def ask_of(messages: list[Message]) -> str | None:
    """The text of the last user message."""
    for message in reversed(messages):
        if message.get("role") == "user" and (text := text_of(message.get("content"))):
            return text
    return None


def text_of(content: Any) -> str:
    """The text of a content: a text, or parts of which the texts are joined."""
    content = from_json(content)
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        return "".join(text_of(part) for part in content)
    if isinstance(content, Mapping):
        for key in _TEXT_KEYS:
            if content.get(key) is not None:
                return text_of(content[key])
    return ""


def answer_of(value: Any) -> Answer:
    """The answer in a chat completion, a message, choices, content blocks, or a text."""
    value = from_json(value)
    if isinstance(value, Mapping):
        if "choices" in value:
            return answer_of(value["choices"])
        if isinstance(value.get("message"), Mapping):
            inner = _of_message(value["message"])
            return Answer(inner.text, inner.tool_calls, _word(value.get("finish_reason")))
        if isinstance(value.get("raw"), str):  # TensorZero's JSON functions
            return Answer(value["raw"])
        return _of_message(value)
    if isinstance(value, list):
        if value and isinstance(value[0], Mapping) and ("message" in value[0] or "role" in value[0]):
            return answer_of(value[-1] if "role" in value[0] else value[0])
        calls = [part for part in value if isinstance(part, Mapping) and part.get("type") in ("tool_call", "tool_use")]
        return Answer(text_of(value) or None, calls or None)
    return Answer(str(value) if value not in (None, "") else None)


def split_answer(messages: list[Message]) -> tuple[list[Message], Any]:
    """Messages whose last is the assistant's (a fine-tuning row): what was asked, and that answer."""
    if len(messages) > 1 and messages[-1].get("role") == "assistant":
        return messages[:-1], messages[-1]
    return messages, None


def _of_message(message: Mapping[str, Any]) -> Answer:
    return Answer(text_of(message.get("content")) or text_of(message.get("text")) or None, message.get("tool_calls"))


def _message(value: Mapping[str, Any]) -> Message:
    message = {name: item for name, item in value.items() if item is not None}
    content = from_json(message.get("content"))
    if isinstance(content, list) and all(_plain(part) for part in content):
        message["content"] = text_of(content)
    return message


def _plain(part: Any) -> bool:
    return isinstance(part, str) or (isinstance(part, Mapping) and part.get("type", "text") == "text")


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None
