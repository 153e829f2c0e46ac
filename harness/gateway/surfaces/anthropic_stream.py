"""The chunks of a chat completion as Anthropic's stream events.

Anthropic has one open block at a time; chat completions let deltas of several tool calls mix. So blocks stand
in a queue: the first is sent as it comes, the others wait until it is complete (a tool call: when its
arguments are whole JSON and another block has begun). A call begins once its arguments do, since its name may
come in fragments before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from harness.gateway.surfaces.anthropic import ReplyContext
from harness.gateway.surfaces.anthropic_errors import chunk_event, error_event
from harness.gateway.surfaces.anthropic_reply import (
    calls_of,
    message_id,
    shown,
    stop_of,
    text_of,
    tool_id,
    usage_of,
)
from pointsman.errors import RequestError
from pointsman.upstream.anthropic_state import THINKING

PING = b'event: ping\ndata: {"type":"ping"}\n\n'


class _Block:
    """A block that is not yet closed. `waiting` holds deltas that are still to be sent."""

    def __init__(self, kind: Literal["text", "thinking", "redacted_thinking", "tool_use"]) -> None:
        self.kind = kind
        self.begun = False
        self.closed = False  # nothing more can be added, whatever comes
        self.waiting: list[dict[str, Any]] = []
        self.data = ""
        self.call_index: Any = None
        self.call_id: str | None = None
        self.name = ""
        self.arguments: list[str] = []

    @property
    def complete(self) -> bool:
        """Whether nothing more of it is to be expected once another block has begun."""
        return self.kind != "tool_use" or _is_json("".join(self.arguments))


class AnthropicStream:
    """One stream: `feed` it the data of each chunk, then `finish` at `[DONE]`, or `fail`."""

    def __init__(self, context: ReplyContext) -> None:
        self._context = context
        self._queue: list[_Block] = []
        self._calls: list[_Block] = []
        self._index = 0  # of the first block in the queue
        self._identity = ""
        self._choice: dict[str, Any] = {}
        self._usage: Any = None
        self._characters = 0
        self._refused = False
        self._failed = False

    def feed(self, data: bytes) -> bytes:
        """The events for one chunk, often one, sometimes none."""
        chunk = msgspec.json.decode(data)
        if not isinstance(chunk, dict) or self._failed:
            return b""
        if chunk.get("error") is not None:
            self._failed = True
            return chunk_event(chunk["error"])
        events = [] if self._identity else [self._start(chunk)]
        self._usage = chunk.get("usage") or self._usage
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and choice.get("index", 0) == 0:
                self._read(choice)
        self._send(events, final=False)
        return b"".join(events)

    def finish(self) -> bytes:
        """What closes the message: its last blocks, how it ended, its usage. Nothing after an error."""
        if self._failed:
            return b""
        events = [] if self._identity else [self._start({})]
        self._send(events, final=True)
        reason, sequence = stop_of(self._choice, self._context, tools=bool(self._calls), refused=self._refused)
        usage = usage_of(self._usage, self._context, self._characters)
        delta = {"stop_reason": reason, "stop_sequence": sequence}
        events.append(_event("message_delta", delta=delta, usage=usage))
        events.append(_event("message_stop"))
        return b"".join(events)

    def fail(self, error: RequestError) -> bytes:
        """An error in the middle; the message is not closed after it."""
        if self._failed:
            return b""
        self._failed = True
        return error_event(error)

    def _start(self, chunk: Mapping[str, Any]) -> bytes:
        self._identity = message_id(chunk.get("id"))
        message: dict[str, Any] = {
            "id": self._identity,
            "type": "message",
            "role": "assistant",
            "model": chunk.get("model") or self._context.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage_of(None, self._context, 0),
        }
        return _event("message_start", message=message)

    def _read(self, choice: Mapping[str, Any]) -> None:
        # The words of how it ended may stand on one chunk or on several.
        self._choice.update({name: value for name, value in choice.items() if name != "delta" and value is not None})
        held = choice.get("delta")
        delta: Mapping[str, Any] = held if isinstance(held, dict) else {}
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if self._context.thinking and isinstance(reasoning, str) and reasoning:
            self._add("thinking", {"type": "thinking_delta", "thinking": reasoning})
        thoughts = delta.get(THINKING)
        for thought in thoughts if isinstance(thoughts, list) else ():
            self._add_thought(thought)
        refusal = text_of(delta.get("refusal"))
        self._refused = self._refused or bool(refusal)
        if text := text_of(delta.get("content")) + refusal:
            self._characters += len(text)
            self._add("text", {"type": "text_delta", "text": text})
        for call in calls_of(delta):
            self._add_call(call)

    def _add(self, kind: Literal["text", "thinking"], delta: dict[str, Any]) -> None:
        last = self._queue[-1] if self._queue else None
        if last is None or last.kind != kind or last.closed:
            last = _Block(kind)
            self._queue.append(last)
        last.waiting.append(delta)

    def _add_thought(self, given: Any) -> None:
        """A whole thinking block: the signature of what was shown as it came, or all of it at once."""
        thought = shown(given, self._context)
        if thought is None:
            return
        if thought["type"] == "redacted_thinking":
            block = _Block("redacted_thinking")
            block.data, block.closed = thought["data"], True
            self._queue.append(block)
            return
        last = self._queue[-1] if self._queue else None
        if last is None or last.kind != "thinking" or last.closed:
            last = _Block("thinking")
            self._queue.append(last)
            if thought["thinking"]:
                last.waiting.append({"type": "thinking_delta", "thinking": thought["thinking"]})
        if thought["signature"]:
            last.waiting.append({"type": "signature_delta", "signature": thought["signature"]})
        last.closed = True

    def _add_call(self, call: Mapping[str, Any]) -> None:
        held = call.get("function")
        function: Mapping[str, Any] = held if isinstance(held, dict) else {}
        block = self._call(call.get("index"), call.get("id"))
        if block.closed:
            return
        if isinstance(name := function.get("name"), str) and not block.begun:
            block.name += name
        if isinstance(arguments := function.get("arguments"), str) and arguments:
            self._characters += len(arguments)
            block.arguments.append(arguments)
            block.waiting.append({"type": "input_json_delta", "partial_json": arguments})

    def _call(self, index: Any, given: Any) -> _Block:
        """The call that a delta continues: by its index, unless it brings another id; without one, the last."""
        identity = given if isinstance(given, str) and given else None
        found = next((block for block in reversed(self._calls) if index is None or block.call_index == index), None)
        if found is None or (identity and found.call_id and identity != found.call_id):
            found = _Block("tool_use")
            found.call_index = index
            self._calls.append(found)
            self._queue.append(found)
        found.call_id = found.call_id or identity
        return found

    def _send(self, events: list[bytes], *, final: bool) -> None:
        """Sends what can be sent of the queue."""
        while self._queue:
            head = self._queue[0]
            if head.kind == "tool_use" and not head.arguments and not final:
                return
            if not head.begun:
                head.begun = True
                events.append(_event("content_block_start", index=self._index, content_block=self._opening(head)))
            events += [_event("content_block_delta", index=self._index, delta=delta) for delta in head.waiting]
            head.waiting.clear()
            if not final and (len(self._queue) == 1 or not head.complete):
                return
            head.closed = True
            events.append(_event("content_block_stop", index=self._index))
            self._queue.pop(0)
            self._index += 1

    def _opening(self, block: _Block) -> dict[str, Any]:
        if block.kind == "text":
            return {"type": "text", "text": ""}
        if block.kind == "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        if block.kind == "redacted_thinking":
            return {"type": "redacted_thinking", "data": block.data}
        place = next(index for index, call in enumerate(self._calls) if call is block)
        identity = tool_id(block.call_id, self._identity, place)
        return {"type": "tool_use", "id": identity, "name": block.name, "input": {}}


def _event(kind: str, **fields: Any) -> bytes:
    return b"event: " + kind.encode() + b"\ndata: " + msgspec.json.encode({"type": kind, **fields}) + b"\n\n"


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return False
    return True
