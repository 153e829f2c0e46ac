"""A Responses `input` as chat messages.

A Response's output is a flat list of items, while chat puts an assistant's text and calls into one
message, with the results right behind it: items that follow one another become one message, and a
result goes to its call wherever in the list it stood. Reasoning items are left out: their text and
signatures belong to the worker that made them, and the next turn may be another's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from harness.gateway.surfaces.responses_checks import required_text, wrong
from harness.gateway.surfaces.responses_content import Part, chat_content, chat_parts
from pointsman.errors import RequestError

Message = dict[str, Any]

_ROLES = ("user", "system", "developer")
CUSTOM_ARGUMENT = "input"
"""The one argument of the function by which workers see a free-form tool."""
SHOWN_BELOW = "(the result is in the next user message)"
"""Stands for a result without text."""


def chat_messages(value: Any, instructions: str | None) -> list[Message]:
    """Raises a 400 that names the item where `value` cannot be given as messages."""
    if isinstance(value, str):
        value = [{"role": "user", "content": value}]
    if not isinstance(value, list) or not value:
        raise wrong("input", "a text, or a list with at least one item")
    turns = _Turns()
    for index, item in enumerate(value):
        turns.add(item, f"input[{index}]")
    head = [{"role": "system", "content": instructions}] if instructions else []
    messages = head + turns.messages()
    if not messages:
        raise wrong("input", "at least one item besides reasoning")
    return messages


@dataclass
class _Turn:
    """One message; for an assistant also its calls, their results, and images that came in results."""

    role: str
    content: str | list[Part] | None = None
    calls: list[dict[str, Any]] = field(default_factory=list)
    results: list[Message] = field(default_factory=list)
    media: list[Part] = field(default_factory=list)

    def messages(self) -> list[Message]:
        message: Message = {"role": self.role, "content": self.content}
        if self.calls:
            message["tool_calls"] = self.calls
        shown: list[Message] = [{"role": "user", "content": self.media}] if self.media else []
        return [message, *self.results, *shown]


class _Turns:
    def __init__(self) -> None:
        self._turns: list[_Turn] = []
        self._callers: dict[str, _Turn] = {}
        self._open: dict[str, None] = {}  # calls without a result yet, in order

    def add(self, item: Any, path: str) -> None:
        if not isinstance(item, dict):
            raise wrong(path, "an object")
        kind = item.get("type", "message" if "role" in item else None)
        if kind == "message":
            self._message(item, path)
        elif kind == "function_call":
            arguments = item.get("arguments")
            if not isinstance(arguments, str):
                raise wrong(f"{path}.arguments", "a text")
            self._call(item, arguments or "{}", path)
        elif kind == "custom_tool_call":
            if not isinstance(item.get("input"), str):
                raise wrong(f"{path}.input", "a text")
            self._call(item, msgspec.json.encode({CUSTOM_ARGUMENT: item["input"]}).decode(), path)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            self._result(item, path)
        elif kind != "reasoning":
            raise _not_served(kind, path)

    def messages(self) -> list[Message]:
        for call_id in self._open:
            raise RequestError(
                f"input: no output for the tool call {call_id}; give its function_call_output", param="input"
            )
        return [message for turn in self._turns for message in turn.messages()]

    def _message(self, item: dict[str, Any], path: str) -> None:
        role = item.get("role")
        content = chat_content(item.get("content"), f"{path}.content")
        if role == "assistant":
            self._said(content)
        elif role in _ROLES:
            self._turns.append(_Turn(role, content))
        else:
            raise wrong(f"{path}.role", "user, assistant, system or developer")

    def _said(self, content: str | list[Part]) -> None:
        """Text beside calls that wait for their results is of the same message."""
        last = self._turns[-1] if self._turns else None
        if last is None or not last.calls or last.results:
            self._turns.append(_Turn("assistant", content))
        elif last.content is None:
            last.content = content
        else:
            last.content = _as_parts(last.content) + _as_parts(content)

    def _call(self, item: dict[str, Any], arguments: str, path: str) -> None:
        call_id = required_text(item.get("call_id"), f"{path}.call_id")
        name = required_text(item.get("name"), f"{path}.name")
        last = self._turns[-1] if self._turns else None
        if last is None or last.role != "assistant" or last.results:
            last = _Turn("assistant")
            self._turns.append(last)
        last.calls.append({"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}})
        self._callers[call_id] = last
        self._open[call_id] = None

    def _result(self, item: dict[str, Any], path: str) -> None:
        call_id = required_text(item.get("call_id"), f"{path}.call_id")
        turn = self._callers.get(call_id)
        if turn is None:
            raise RequestError(
                f"{path}.call_id: no tool call {call_id} stands before this output", param=f"{path}.call_id"
            )
        self._open.pop(call_id, None)
        text, media = _output(item.get("output"), f"{path}.output")
        turn.results.append({"role": "tool", "tool_call_id": call_id, "content": text})
        turn.media.extend(media)


def _output(output: Any, path: str) -> tuple[str, list[Part]]:
    """A result as text, and apart from it what a chat API's `tool` message cannot hold."""
    if isinstance(output, str):
        return output, []
    parts = chat_parts(output, path)
    text = "\n".join(part["text"] for part in parts if part["type"] == "text")
    media = [part for part in parts if part["type"] != "text"]
    return text or (SHOWN_BELOW if media else ""), media


def _as_parts(content: str | list[Part]) -> list[Part]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _not_served(kind: Any, path: str) -> RequestError:
    if kind == "item_reference":
        return RequestError(
            f"{path}: answers are not kept here for later turns; give the item itself",
            param=path,
            code="unsupported_parameter",
        )
    return wrong(
        f"{path}.type",
        "one of message, function_call, function_call_output, custom_tool_call, custom_tool_call_output, reasoning",
    )
