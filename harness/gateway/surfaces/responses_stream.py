"""A chat stream as a Responses stream: fed with the data of chat events, it gives whole Responses events.

Once told, text, calls and their order never change. Calls and the message stay open until the end, since
workers interleave them; a stretch of reasoning ends where anything else begins. An error in the middle is
told as `error`, then `response.failed` as the last event, and no item that was open is said to be done: an
agent would run a call that was cut off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from harness.gateway.surfaces.responses_context import Naming, ResponsesContext
from harness.gateway.surfaces.responses_items import (
    GrowingCall,
    GrowingItem,
    GrowingMessage,
    GrowingReasoning,
    Status,
)
from harness.gateway.surfaces.responses_object import (
    INCOMPLETE,
    Shape,
    error_in,
    error_object,
    logprobs_of,
    response_object,
    usage_object,
)
from harness.gateway.surfaces.responses_reply import content_text, reasoning_text
from pointsman.errors import RequestError

DONE = b"[DONE]"

# Readers that split lines as Unicode does would cut an event at these.
_SEPARATORS = ((b"\xe2\x80\xa8", rb"\u2028"), (b"\xe2\x80\xa9", rb"\u2029"), (b"\xc2\x85", rb"\u0085"))

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class ResponsesStream:
    """One answer. `identity` is the decision's id, `created_at` the request's time, `clock` the time now."""

    def __init__(
        self,
        context: ResponsesContext,
        *,
        identity: str,
        created_at: float,
        clock: Callable[[], float],
    ) -> None:
        self.ended = False
        self._context = context
        self._naming = Naming(identity)
        self._created_at = created_at
        self._clock = clock
        self._events: list[bytes] = []
        self._sequence = 0
        self._begun = False
        self._model: str | None = None
        self._usage: Shape | None = None
        self._finish_reason: str | None = None
        self._items: list[GrowingItem] = []
        self._message: GrowingMessage | None = None
        self._reasoning: GrowingReasoning | None = None
        self._calls: list[tuple[object, GrowingCall]] = []

    def feed(self, data: bytes) -> bytes:
        """The events that one chat event's data gives; none is ever held back but a call without its name."""
        if self.ended:
            return b""
        if data.strip() == DONE:
            return self._finish()
        try:
            chunk = _decode(data)
        except (msgspec.MsgspecError, RecursionError):
            chunk = None
        if not isinstance(chunk, dict):
            return self.fail(RequestError("the worker's stream is not JSON here", status=502, code="malformed"))
        if chunk.get("error") is not None:
            return self.fail(error_in(chunk["error"]))
        self._read(chunk)
        return self._taken()

    def close(self) -> bytes:
        """The stream has ended, with `[DONE]` or without: what is left to be told."""
        if self.ended:
            return b""
        if self._finish_reason is not None:
            return self._finish()
        return self.fail(RequestError("the answer stopped before its end", status=502, code="truncated"))

    def fail(self, error: RequestError) -> bytes:
        """An error in the middle. The `error` object beside the event's own fields makes OpenAI's SDK raise."""
        if self.ended:
            return b""
        self._begin()
        self.ended = True
        held = {"type": error.type, "code": error.code, "message": error.message, "param": error.param}
        self._emit("error", code=error.code, message=error.message, param=error.param, error=held)
        output = [item.shape("incomplete") for item in self._items]
        self._emit("response.failed", response=self._response("failed", output=output, error=error_object(error)))
        return self._taken()

    def _finish(self) -> bytes:
        self._begin()
        self.ended = True
        self._tell_waiting()
        reason = INCOMPLETE.get(self._finish_reason or "")
        output: list[Shape] = []
        for item in self._items:
            cut = reason is not None and item is self._items[-1]
            status: Status = "incomplete" if cut else "completed"
            item.close(status)
            output.append(item.shape(status))
        if reason is None:
            whole = self._response("completed", output=output, completed_at=self._clock())
            self._emit("response.completed", response=whole)
        else:
            self._emit("response.incomplete", response=self._response("incomplete", output=output, incomplete=reason))
        return self._taken()

    def _read(self, chunk: Shape) -> None:
        if isinstance(model := chunk.get("model"), str) and model:
            self._model = self._model or model
        self._begin()
        if (usage := usage_object(chunk.get("usage"))) is not None:
            self._usage = usage
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and not choice.get("index"):  # the API has no other choices
                self._read_choice(choice)

    def _read_choice(self, choice: Shape) -> None:
        delta = choice.get("delta")
        if isinstance(delta, dict):
            if reasoning := reasoning_text(delta):
                self._add_reasoning(reasoning)
            if text := content_text(delta.get("content")):
                self._open_message().text(text, logprobs_of(choice))
            if isinstance(refusal := delta.get("refusal"), str) and refusal:
                self._open_message().refusal(refusal)
            calls = delta.get("tool_calls")
            for call in calls if isinstance(calls, list) else ():
                if isinstance(call, dict):
                    self._read_call(call)
        if isinstance(reason := choice.get("finish_reason"), str):
            self._finish_reason = reason

    def _read_call(self, delta: Shape) -> None:
        index, identity, function = delta.get("index"), delta.get("id"), delta.get("function")
        identity = identity if isinstance(identity, str) and identity else None
        call = self._call_of(index, identity)
        if call is None:
            self._something_else()
            call = GrowingCall(self._emit)
            self._calls.append((index, call))
        again = identity is not None and call.given_id == identity
        call.given_id = call.given_id or identity
        if not isinstance(function, dict):
            return
        if isinstance(name := function.get("name"), str) and name:
            call.extend_name(name, again=again)
        if isinstance(arguments := function.get("arguments"), str) and arguments:
            self._tell(call)
            call.add(arguments)

    def _call_of(self, index: object, identity: str | None) -> GrowingCall | None:
        """A delta continues the call of its index, unless it brings another id: some send index 0 for all."""
        alike = [call for known, call in reversed(self._calls) if index is None or known == index]
        if identity is None or not alike:
            return alike[0] if alike else None
        same = [call for call in alike if call.given_id == identity]
        return same[0] if same else alike[0] if alike[0].given_id is None else None

    def _add_reasoning(self, text: str) -> None:
        if self._reasoning is None:
            self._tell_waiting()
            index = len(self._items)
            identity = self._naming.item("rs", index)
            self._reasoning = GrowingReasoning(self._emit, index, identity, summary=self._context.summary)
            self._items.append(self._reasoning)
        self._reasoning.add(text)

    def _open_message(self) -> GrowingMessage:
        self._something_else()
        if self._message is None:
            index = len(self._items)
            self._message = GrowingMessage(self._emit, index, self._naming.item("msg", index))
            self._items.append(self._message)
        return self._message

    def _something_else(self) -> None:
        """Text or a call comes: reasoning that was under way is over, and a call that waits has its name."""
        if self._reasoning is not None:
            self._reasoning.close("completed")
            self._reasoning = None
        self._tell_waiting()

    def _tell_waiting(self) -> None:
        if self._calls:
            self._tell(self._calls[-1][1])

    def _tell(self, call: GrowingCall) -> None:
        if not call.told:
            call.tell(len(self._items), self._naming.item, self._context.custom_tools)
            self._items.append(call)

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            for kind in ("response.created", "response.in_progress"):
                self._emit(kind, response=self._response("in_progress", output=[]))

    def _response(self, status: str, **fields: Any) -> Shape:
        return response_object(
            self._context,
            self._naming,
            self._created_at,
            status=status,
            model=self._model,
            usage=self._usage,
            **fields,
        )

    def _emit(self, kind: str, /, **fields: object) -> None:
        data = _encode({"type": kind, "sequence_number": self._sequence, **fields})
        for raw, escaped in _SEPARATORS:
            if raw in data:
                data = data.replace(raw, escaped)
        self._sequence += 1
        self._events.append(b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n")

    def _taken(self) -> bytes:
        events, self._events = self._events, []
        return b"".join(events)
