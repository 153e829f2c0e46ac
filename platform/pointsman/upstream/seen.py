"""What passed by: content, tool calls, usage and ending of a reply, read beside the bytes that are forwarded.

It reads whole replies and the events of streams alike. Fields it does not know are never touched,
since it only reads.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from pointsman.database.clean import clean_text
from pointsman.errors import UpstreamError
from pointsman.upstream.faults import from_error_object
from pointsman.upstream.usage import Usage

MAX_STORED_CHARS = 2_000_000


class _Choice(msgspec.Struct):
    index: Any = 0
    delta: Any = None
    message: Any = None
    finish_reason: Any = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: Any = None
    id: Any = None
    model: Any = None
    error: Any = None


_decode = msgspec.json.Decoder(_Chunk).decode


class Seen:
    """Accumulates one reply. `completion` is the first choice's text, `choices` how many there were."""

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self.completion_id: str | None = None
        self.model: str | None = None
        self.finish_reason: str | None = None
        self.choices = 0
        # Of the newest part that was read:
        self.has_usage = False
        self.usage_only = False  # usage and no choice
        self.unclean = False  # JSON only by a lenient reading: it must be written anew
        self.chars = 0
        self._text: dict[int, list[str]] = {}
        self._reasoning: dict[int, list[str]] = {}
        self._tools: dict[int, list[dict[str, Any]]] = {}
        self._begun: set[int] = set()
        self._ended: set[int] = set()

    @property
    def completion(self) -> str | None:
        return _first_text(self._text)

    @property
    def reasoning(self) -> str | None:
        return _first_text(self._reasoning) or None

    @property
    def tool_calls(self) -> list[dict[str, Any]] | None:
        """The first choice's, as OpenAI writes them in a message: id, type, function name and arguments."""
        if not self._tools:
            return None
        return [
            {
                "id": tool["id"],
                "type": "function",
                "function": {"name": clean_text(tool["name"]), "arguments": clean_text("".join(tool["arguments"]))},
            }
            for tool in self._tools[min(self._tools)]
        ] or None

    @property
    def tool_call_ids(self) -> list[str]:
        """The ids of all choices' tool calls, where the worker gave them any."""
        return [tool["id"] for tools in self._tools.values() for tool in tools if tool["id"]]

    @property
    def has_content(self) -> bool:
        return self.chars > 0

    @property
    def finished(self) -> bool:
        """Whether every choice that began has said how it ended."""
        return self.finish_reason is not None and self._begun == self._ended

    def whole(self, body: bytes) -> None:
        """Reads a JSON reply. Raises `UpstreamError` where it is an error or not a completion."""
        chunk = self._parse(body)
        if not chunk.choices:
            raise UpstreamError("malformed", "the reply has no choices")
        self._read(chunk)

    def event(self, data: bytes) -> bool:
        """Reads one event's data; True when it carries content or an ending: something to show."""
        before = self.chars
        chunk = self._parse(data)
        self._read(chunk)
        self.has_usage = chunk.usage is not None
        self.usage_only = self.has_usage and not chunk.choices
        return self.chars > before or self.finish_reason is not None

    def _parse(self, data: bytes) -> _Chunk:
        self.unclean = False
        try:
            chunk = _decode(data)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            chunk = _lenient(data)
            self.unclean = True
        if chunk.error is not None:
            raise from_error_object(chunk.error)
        return chunk

    def _read(self, chunk: _Chunk) -> None:
        if chunk.usage is not None:
            self.usage = Usage.of(chunk.usage) or self.usage
        if self.completion_id is None and isinstance(chunk.id, str):
            self.completion_id = clean_text(chunk.id)[:200]
        if self.model is None and isinstance(chunk.model, str):
            self.model = clean_text(chunk.model)[:200]
        for choice in chunk.choices or ():
            self._read_choice(choice)

    def _read_choice(self, choice: _Choice) -> None:
        index = choice.index if isinstance(choice.index, int) else 0
        self.choices = max(self.choices, index + 1)
        if isinstance(choice.finish_reason, str):
            self.finish_reason = clean_text(choice.finish_reason)[:60]
            self._ended.add(index)
        self._begun.add(index)
        part = choice.delta if choice.delta is not None else choice.message
        if not isinstance(part, dict):
            return
        if (content := part.get("content")) and isinstance(content, str):
            self._keep(self._text.setdefault(index, []), content)
        reasoning = part.get("reasoning_content") or part.get("reasoning")
        if isinstance(reasoning, str) and reasoning:
            self._keep(self._reasoning.setdefault(index, []), reasoning)
        if calls := part.get("tool_calls"):
            self._read_tools(self._tools.setdefault(index, []), calls)
        for name in ("refusal", "function_call", "audio"):
            if part.get(name):
                self.chars += 1

    def _keep(self, parts: list[str], text: str) -> None:
        if self.chars < MAX_STORED_CHARS:
            parts.append(text)
        self.chars += len(text)

    def _read_tools(self, tools: list[dict[str, Any]], calls: Any) -> None:
        """Deltas continue the call of their index, unless they bring another id: some send index 0 for all."""
        for call in calls if isinstance(calls, list) else ():
            if not isinstance(call, dict):
                continue
            function = call.get("function")
            function = function if isinstance(function, dict) else {}
            index, identity = call.get("index"), call.get("id")
            tool = next((t for t in reversed(tools) if t["index"] == index and index is not None), None)
            if tool is None or (identity and tool["id"] and identity != tool["id"]):
                tool = {"index": index, "id": None, "name": "", "arguments": []}
                tools.append(tool)
                self.chars += 1  # a call is content even before its first character
            if isinstance(identity, str) and identity:
                tool["id"] = clean_text(identity)[:200]
            if isinstance(name := function.get("name"), str):
                tool["name"] += name
            if isinstance(arguments := function.get("arguments"), str):
                self._keep(tool["arguments"], arguments)


def _first_text(parts: dict[int, list[str]]) -> str | None:
    """The text of the choice with the lowest index, None where no choice has any."""
    return clean_text("".join(parts[min(parts)])) if parts else None


def _lenient(data: bytes) -> _Chunk:
    """Once more with the standard parser, which takes lone surrogates, NaN and huge numbers."""
    try:
        value = json.loads(data.decode("utf-8", "replace"))
        return msgspec.convert(value, _Chunk)
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        raise UpstreamError("malformed", "the reply is not the JSON of a completion") from error
