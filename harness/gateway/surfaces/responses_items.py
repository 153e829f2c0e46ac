"""Output items of a stream while they grow: each tells its own events, and at any time its shape so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

from harness.gateway.surfaces.responses_object import (
    Shape,
    call_item,
    custom_input,
    message_item,
    reasoning_item,
    refusal_part,
    text_part,
)

Status = Literal["in_progress", "completed", "incomplete"]


class Emit(Protocol):
    """Sends one event; `fields` are what it holds besides type and sequence number."""

    def __call__(self, kind: str, /, **fields: object) -> None: ...


class GrowingItem(Protocol):
    def shape(self, status: Status) -> Shape:
        """The item as it stands."""

    def close(self, status: Status) -> None:
        """Tells the ends of the item and its parts, once."""


class GrowingMessage:
    """The assistant's message: a text, a refusal, or the one after the other."""

    def __init__(self, emit: Emit, index: int, identity: str) -> None:
        self._emit, self._index, self._identity = emit, index, identity
        self._parts: list[_Part] = []
        emit("response.output_item.added", output_index=index, item=self.shape("in_progress"))

    def text(self, delta: str, logprobs: list[Shape]) -> None:
        part = self._part("output_text")
        part.pieces.append(delta)
        part.logprobs.extend(logprobs)
        self._emit("response.output_text.delta", **self._place(), delta=delta, logprobs=logprobs)

    def refusal(self, delta: str) -> None:
        self._part("refusal").pieces.append(delta)
        self._emit("response.refusal.delta", **self._place(), delta=delta)

    def shape(self, status: Status) -> Shape:
        return message_item(self._identity, status, [part.shape() for part in self._parts])

    def close(self, status: Status) -> None:
        self._close_part()
        self._emit("response.output_item.done", output_index=self._index, item=self.shape(status))

    def _part(self, kind: Literal["output_text", "refusal"]) -> _Part:
        if self._parts and self._parts[-1].kind == kind:
            return self._parts[-1]
        self._close_part()
        part = _Part(kind)
        self._parts.append(part)
        self._emit("response.content_part.added", **self._place(), part=part.shape())
        return part

    def _close_part(self) -> None:
        if not self._parts:
            return
        part = self._parts[-1]
        if part.kind == "refusal":
            self._emit("response.refusal.done", **self._place(), refusal="".join(part.pieces))
        else:
            text = "".join(part.pieces)
            self._emit("response.output_text.done", **self._place(), text=text, logprobs=part.logprobs)
        self._emit("response.content_part.done", **self._place(), part=part.shape())

    def _place(self) -> Shape:
        return {"item_id": self._identity, "output_index": self._index, "content_index": len(self._parts) - 1}


class _Part:
    def __init__(self, kind: Literal["output_text", "refusal"]) -> None:
        self.kind = kind
        self.pieces: list[str] = []
        self.logprobs: list[Shape] = []

    def shape(self) -> Shape:
        text = "".join(self.pieces)
        return refusal_part(text) if self.kind == "refusal" else text_part(text, self.logprobs)


class GrowingReasoning:
    """A stretch of reasoning: one summary part, or one part of text of its own."""

    def __init__(self, emit: Emit, index: int, identity: str, *, summary: bool) -> None:
        self._emit, self._index, self._identity, self._summary = emit, index, identity, summary
        self._pieces: list[str] = []
        self._closed: Status | None = None
        kind = "summary" if summary else "content"
        self._place: Shape = {"item_id": identity, "output_index": index, f"{kind}_index": 0}
        self._part_event = "response.reasoning_summary_part" if summary else "response.content_part"
        self._text_event = "response.reasoning_summary_text" if summary else "response.reasoning_text"
        empty = reasoning_item(identity, "in_progress", None, summary=summary)
        emit("response.output_item.added", output_index=index, item=empty)
        emit(f"{self._part_event}.added", **self._place, part=self._part())

    def add(self, delta: str) -> None:
        self._pieces.append(delta)
        self._emit(f"{self._text_event}.delta", **self._place, delta=delta)

    def shape(self, status: Status) -> Shape:
        text = "".join(self._pieces)
        return reasoning_item(self._identity, self._closed or status, text, summary=self._summary)

    def close(self, status: Status) -> None:
        if self._closed is not None:
            return
        self._closed = status
        self._emit(f"{self._text_event}.done", **self._place, text="".join(self._pieces))
        self._emit(f"{self._part_event}.done", **self._place, part=self._part())
        self._emit("response.output_item.done", output_index=self._index, item=self.shape(status))

    def _part(self) -> Shape:
        kind = "summary_text" if self._summary else "reasoning_text"
        return {"type": kind, "text": "".join(self._pieces)}


class GrowingCall:
    """A tool call. It is told once its name is whole: when arguments come, or something else begins.

    An id that comes only after that is too late, and the call keeps one made here. A free-form tool's
    input comes as the JSON of an argument, so it is told at the end, in one piece.
    """

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self.given_id: str | None = None
        self.name = ""
        self.told = False
        self._call_id = ""
        self._arguments: list[str] = []
        self._index = 0
        self._identity = ""
        self._custom = False

    def extend_name(self, piece: str, *, again: bool) -> None:
        """Names come whole, in pieces, or whole again and again, then mostly beside the id `again`."""
        if not ((self.told or again) and piece == self.name):
            self.name += piece

    def tell(self, index: int, name_item: Callable[[str, int], str], custom_tools: frozenset[str]) -> None:
        self.told = True
        self._index = index
        self._custom = self.name in custom_tools
        self._identity = name_item("ctc" if self._custom else "fc", index)
        self._call_id = self.given_id or name_item("call", index)
        self._emit("response.output_item.added", output_index=index, item=self.shape("in_progress"))

    def add(self, delta: str) -> None:
        self._arguments.append(delta)
        if not self._custom:
            self._emit("response.function_call_arguments.delta", **self._place(), delta=delta)

    def shape(self, status: Status) -> Shape:
        arguments = "".join(self._arguments)
        return call_item(self._identity, status, self._call_id, self.name, arguments, custom=self._custom)

    def close(self, status: Status) -> None:
        arguments = "".join(self._arguments)
        if self._custom:
            text = custom_input(arguments) if arguments else ""
            self._emit("response.custom_tool_call_input.delta", **self._place(), delta=text)
            self._emit("response.custom_tool_call_input.done", **self._place(), input=text)
        else:
            done: Shape = {"name": self.name, "arguments": arguments}
            self._emit("response.function_call_arguments.done", **self._place(), **done)
        self._emit("response.output_item.done", output_index=self._index, item=self.shape(status))

    def _place(self) -> Shape:
        return {"item_id": self._identity, "output_index": self._index}
