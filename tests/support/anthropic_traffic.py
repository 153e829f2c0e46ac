"""Anthropic traffic written by hand: events of a stream from a message, and what Claude Code sends."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any


def message(content: list[dict[str, Any]], stop: str = "end_turn", **more: Any) -> dict[str, Any]:
    """A reply of the Messages API."""
    usage = {
        "input_tokens": 11,
        "cache_creation_input_tokens": 200,
        "cache_read_input_tokens": 3000,
        "output_tokens": 47,
    }
    return {
        "id": "msg_01XYZ",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage,
        **more,
    }


def stream_of(whole: dict[str, Any], size: int = 7) -> Iterator[bytes]:
    """The data of the events with which the API streams that message, its texts cut into pieces of `size`."""
    usage = {**whole["usage"], "output_tokens": 1}
    start = {**whole, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield _data(type="message_start", message=start)
    yield _data(type="ping")
    for index, block in enumerate(whole["content"]):
        yield _data(type="content_block_start", index=index, content_block=_empty(block))
        for delta in _deltas(block, size):
            yield _data(type="content_block_delta", index=index, delta=delta)
        yield _data(type="content_block_stop", index=index)
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": whole["stop_sequence"]}
    yield _data(type="message_delta", delta=delta, usage={"output_tokens": whole["usage"]["output_tokens"]})
    yield _data(type="message_stop")


def collect(events: bytes) -> dict[str, Any]:
    """The message that a client puts together from events; asserts that they come in the order they must."""
    built: dict[str, Any] = {}
    open_index: int | None = None
    inputs: dict[int, str] = {}
    for name, event in parse_events(events):
        assert name == event["type"]
        if name == "message_start":
            assert not built
            built = event["message"]
            assert built["content"] == []
        elif name == "content_block_start":
            assert open_index is None and event["index"] == len(built["content"])
            open_index = event["index"]
            built["content"].append(event["content_block"])
        elif name == "content_block_delta":
            assert event["index"] == open_index
            _apply(built["content"][open_index], event["delta"], inputs, open_index)
        elif name == "content_block_stop":
            assert event["index"] == open_index
            open_index = None
        elif name == "message_delta":
            assert open_index is None
            built.update(event["delta"])
            built["usage"].update(event["usage"])
        else:
            assert name in ("message_stop", "ping"), name
    for index, text in inputs.items():
        built["content"][index]["input"] = json.loads(text)
    return built


def parse_events(events: bytes) -> list[tuple[str, dict[str, Any]]]:
    pairs = []
    for event in events.decode().split("\n\n")[:-1]:
        first, second = event.split("\n")
        pairs.append((first.removeprefix("event: "), json.loads(second.removeprefix("data: "))))
    return pairs


def chunks(*deltas: dict[str, Any], finish: str | None = "stop", usage: Any = None) -> Iterable[bytes]:
    """The data of chat chunks, one per delta."""
    head = {"id": "chatcmpl-9", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    for delta in deltas:
        yield json.dumps({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}).encode()
    if finish:
        yield json.dumps({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}).encode()
    if usage:
        yield json.dumps({**head, "choices": [], "usage": usage}).encode()


def claude_code_request() -> dict[str, Any]:
    """A request of the shape that Claude Code sends in the middle of a tool loop."""
    cached = {"cache_control": {"type": "ephemeral"}}
    names = ("Bash", "Read", "Edit", "Write", "Glob", "Grep", "Task", "TodoWrite", "WebFetch", "mcp__docs__search")
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"path": {"type": "string"}, "limit": {"type": "number"}},
        "required": ["path"],
        "additionalProperties": False,
    }
    return {
        "model": "pointsman",
        "max_tokens": 32000,
        "stream": True,
        "temperature": 1,
        "system": [
            {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.0; cc_entrypoint=cli; cch=4f1a2;"},
            {"type": "text", "text": "You are a coding agent.", **cached},
            {"type": "text", "text": "# Rules\n" + "Be exact. " * 2000, **cached},
        ],
        "tools": [{"name": name, "description": f"{name} does it.", "input_schema": schema} for name in names],
        "metadata": {"user_id": '{"device_id":"d0","account_uuid":"","session_id":"7a1e"}'},
        "thinking": {"type": "enabled", "budget_tokens": 31999},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "<system-reminder>\nToday is Monday.\n</system-reminder>"},
                    {"type": "text", "text": "Why does the build fail?"},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Look at the log.", "signature": "c2ln"},
                    {"type": "text", "text": "I look at the log."},
                    {"type": "tool_use", "id": "toolu_01A", "name": "Bash", "input": {"path": "make", "limit": 2.5}},
                    {"type": "tool_use", "id": "toolu_01B", "name": "Read", "input": {"path": "Makefile"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_01A", "content": "exit 2", "is_error": True},
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_01B",
                        "content": [{"type": "text", "text": "all: x"}],
                        **cached,
                    },
                    {"type": "text", "text": "<system-reminder>\nThe file changed.\n</system-reminder>"},
                ],
            },
        ],
    }


def _data(**event: Any) -> bytes:
    return json.dumps(event).encode()


def _empty(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] == "redacted_thinking":
        return block
    empty = {"text": "", "thinking": "", "signature": "", "input": {}}
    return {name: empty.get(name, value) for name, value in block.items()}


def _deltas(block: dict[str, Any], size: int) -> Iterator[dict[str, Any]]:
    def pieces(text: str) -> list[str]:
        return [text[at : at + size] for at in range(0, len(text), size)]

    if block["type"] == "text":
        yield from ({"type": "text_delta", "text": text} for text in pieces(block["text"]))
    elif block["type"] == "thinking":
        yield from ({"type": "thinking_delta", "thinking": text} for text in pieces(block["thinking"]))
        yield {"type": "signature_delta", "signature": block["signature"]}
    elif block["type"] == "tool_use" and block["input"]:
        yield {"type": "input_json_delta", "partial_json": ""}
        for text in pieces(json.dumps(block["input"])):
            yield {"type": "input_json_delta", "partial_json": text}


def _apply(block: dict[str, Any], delta: dict[str, Any], inputs: dict[int, str], index: int) -> None:
    if delta["type"] == "input_json_delta":
        assert block["type"] == "tool_use"
        inputs[index] = inputs.get(index, "") + delta["partial_json"]
        return
    name = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}[delta["type"]]
    assert block["type"] == ("thinking" if name == "signature" else name)
    block[name] += delta[name]
