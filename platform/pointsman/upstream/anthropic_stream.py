"""A stream of Anthropic's Messages API as the chunks of a chat completion.

Fed with the data of one event, it gives the data of the chunks that stand for it; framing is the caller's.
Thinking is `reasoning_content` as it comes, then one whole `thinking_blocks` item with the sealed signature.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pointsman.upstream.anthropic_reply import chat_usage, encoded, ending, error_of, parsed
from pointsman.upstream.anthropic_state import THINKING, seal
from pointsman.upstream.sse import DONE


@dataclass
class _Open:
    """A block that has begun: `call` is its place among the tool calls, `text` what came of it so far."""

    block: dict[str, Any]
    call: int = -1
    text: list[str] = field(default_factory=list)
    signature: str = ""


class StreamToChat:
    """One stream. `origin` is the worker's name, with which its thinking is sealed."""

    def __init__(self, *, origin: str = "", created: int = 0) -> None:
        self._origin = origin
        self._created = created
        self._id: Any = None
        self._model: Any = None
        self._usage: dict[str, Any] = {}
        self._open: dict[int, _Open] = {}
        self._calls = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The chunks for one event's data; `[DONE]` for its end. Raises `UpstreamError("malformed")`."""
        event = parsed(data)
        match event.get("type"):
            case "message_start":
                return self._start(event.get("message"))
            case "content_block_start":
                return self._block_start(event.get("index"), event.get("content_block"))
            case "content_block_delta":
                return self._delta(event.get("index"), event.get("delta"))
            case "content_block_stop":
                return self._block_stop(event.get("index"))
            case "message_delta":
                return self._ending(event)
            case "message_stop":
                return [DONE]
            case "error":
                return [encoded(error_of(event))]
            case _:
                return [encoded(error_of(event))] if "error" in event else []  # a ping, or a kind not known yet

    def _start(self, message: Any) -> list[bytes]:
        if isinstance(message, dict):
            self._id, self._model = message.get("id"), message.get("model")
            self._count(message.get("usage"))
        return [self._chunk({"role": "assistant", "content": ""})]

    def _block_start(self, index: Any, block: Any) -> list[bytes]:
        if not isinstance(block, dict) or not isinstance(index, int):
            return []
        opened = self._open[index] = _Open(block)
        kind = block.get("type")
        if kind == "tool_use":
            opened.call = self._calls
            self._calls += 1
            function = {"name": block.get("name"), "arguments": ""}
            return [self._call(opened, {"id": block.get("id"), "type": "function", "function": function})]
        if kind == "redacted_thinking":
            return [self._chunk({THINKING: [seal(block, self._origin)]})]
        if kind == "thinking":
            opened.signature = str(block.get("signature") or "")
            return self._thought(opened, block.get("thinking"))
        return self._text(block.get("text")) if kind == "text" else []

    def _delta(self, index: Any, delta: Any) -> list[bytes]:
        opened = self._open.get(index) if isinstance(index, int) else None
        if opened is None or not isinstance(delta, dict):
            return []
        match delta.get("type"):
            case "text_delta":
                return self._text(delta.get("text"))
            case "thinking_delta":
                return self._thought(opened, delta.get("thinking"))
            case "signature_delta":
                opened.signature += str(delta.get("signature") or "")
            case "input_json_delta" if opened.call >= 0 and delta.get("partial_json"):
                opened.text.append(str(delta["partial_json"]))
                return [self._call(opened, {"function": {"arguments": delta["partial_json"]}})]
        return []

    def _block_stop(self, index: Any) -> list[bytes]:
        opened = self._open.pop(index, None) if isinstance(index, int) else None
        if opened is None:
            return []
        if opened.call >= 0 and not opened.text:
            # No argument came in parts: all of them stood in the beginning, or there are none.
            arguments = encoded(opened.block.get("input") or {}).decode()
            return [self._call(opened, {"function": {"arguments": arguments}})]
        if opened.block.get("type") == "thinking":
            block = {"type": "thinking", "thinking": "".join(opened.text), "signature": opened.signature}
            return [self._chunk({THINKING: [seal(block, self._origin)]})]
        return []

    def _ending(self, event: dict[str, Any]) -> list[bytes]:
        """How it ended, and the usage, which is a total by now."""
        self._count(event.get("usage"))
        delta = event.get("delta")
        if not isinstance(delta, dict) or not isinstance(delta.get("stop_reason"), str):
            return []
        chunks = [self._chunk({}, **ending(delta["stop_reason"], delta.get("stop_sequence")))]
        if (usage := chat_usage(self._usage)) is not None:
            chunks.append(encoded({**self._head(), "choices": [], "usage": usage}))
        return chunks

    def _count(self, usage: Any) -> None:
        if isinstance(usage, dict):
            self._usage.update({name: value for name, value in usage.items() if value is not None})

    def _text(self, text: Any) -> list[bytes]:
        return [self._chunk({"content": text})] if isinstance(text, str) and text else []

    def _thought(self, opened: _Open, text: Any) -> list[bytes]:
        if not isinstance(text, str) or not text:
            return []
        opened.text.append(text)
        return [self._chunk({"reasoning_content": text})]

    def _call(self, opened: _Open, call: dict[str, Any]) -> bytes:
        return self._chunk({"tool_calls": [{"index": opened.call, **call}]})

    def _chunk(self, delta: dict[str, Any], **choice: Any) -> bytes:
        said = {"index": 0, "delta": delta, "finish_reason": None, **choice}
        return encoded({**self._head(), "choices": [said]})

    def _head(self) -> dict[str, Any]:
        return {"id": self._id, "object": "chat.completion.chunk", "created": self._created, "model": self._model}
