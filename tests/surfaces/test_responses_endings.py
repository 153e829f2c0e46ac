"""How Responses streams end: usage, incomplete answers, and errors in the middle."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from harness.gateway.surfaces.responses import ResponsesStream, to_chat
from pointsman.errors import RequestError

DECISION = "0199a3c4-5e6f-7a8b-9c0d-1e2f3a4b5c6d"
TYPES: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
Event = dict[str, Any]


def opened(**fields: Any) -> ResponsesStream:
    body = json.dumps({"model": "pointsman", "input": "hi", "stream": True, **fields}).encode()
    return ResponsesStream(to_chat(body).context, identity=DECISION, created_at=1_760_000_000.0, clock=lambda: 5.0)


def events_of(data: bytes) -> list[Event]:
    """The events, each checked for its frame and by type."""
    events = []
    for frame in data.split(b"\n\n")[:-1]:
        name, _, line = frame.partition(b"\n")
        event = json.loads(line.removeprefix(b"data: "))
        assert name == b"event: " + event["type"].encode()
        assert TYPES.validate_python(event).type == event["type"]
        events.append(event)
    return events


def told(*chunks: Any, **fields: Any) -> list[Event]:
    """All events of a stream; a dict is a chunk, bytes are an event's data as they are."""
    stream = opened(**fields)
    data = b"".join(stream.feed(c if isinstance(c, bytes) else json.dumps(c).encode()) for c in chunks)
    events = events_of(data + stream.close())
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert stream.ended
    return events


def delta(finish: str | None = None, index: int = 0, **held: Any) -> dict[str, Any]:
    return {"id": "c", "model": "small-1", "choices": [{"index": index, "delta": held, "finish_reason": finish}]}


def tool(index: int | None, identity: str | None = None, name: str | None = None, arguments: str | None = None) -> Any:
    call: dict[str, Any] = {"index": index, "id": identity, "function": {"name": name, "arguments": arguments}}
    return delta(tool_calls=[{key: value for key, value in call.items() if value is not None}])


def kinds(events: list[Event]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]


DONE = b"[DONE]"


@pytest.mark.parametrize("place", [0, 1, 2])
def test_usage_on_any_chunk(place: int) -> None:
    chunks = [delta(content="a"), delta("stop"), {"choices": []}]
    chunks[place] = {**chunks[place], "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}}
    usage = told(*chunks, DONE)[-1]["response"]["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (5, 2, 7)


def test_a_null_usage_later_does_not_undo_it() -> None:
    given = {**delta(content="a"), "usage": {"prompt_tokens": 5, "completion_tokens": 2}}
    assert told(given, {**delta("stop"), "usage": None}, DONE)[-1]["response"]["usage"]["total_tokens"] == 7


def test_done_without_a_finish_reason_is_complete() -> None:
    assert kinds(told(delta(content="x"), DONE))[-1] == "completed"


def test_a_finish_reason_without_done_is_complete() -> None:
    assert kinds(told(delta("stop", content="x")))[-1] == "completed"


def test_a_stream_without_an_end_has_failed() -> None:
    events = told(delta(content="x"))
    assert kinds(events)[-2:] == ["error", "failed"]
    assert events[-2]["code"] == "truncated"


@pytest.mark.parametrize(("finish", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")])
def test_incomplete_streams_say_why(finish: str, reason: str) -> None:
    events = told(delta(content="x"), tool(0, "a", "look", '{"x'), delta(finish), DONE)
    assert kinds(events)[-1] == "incomplete"
    response = events[-1]["response"]
    assert (response["status"], response["incomplete_details"]) == ("incomplete", {"reason": reason})
    assert [item["status"] for item in response["output"]] == ["completed", "incomplete"]


@pytest.mark.parametrize(
    ("error", "message", "code", "final"),
    [
        ({"message": "gone", "code": "timeout", "type": "upstream_error"}, "gone", "timeout", "server_error"),
        ({"message": "slow", "code": "rate_limit_exceeded"}, "slow", "rate_limit_exceeded", "rate_limit_exceeded"),
        ({"message": "odd", "code": 502}, "odd", "502", "server_error"),
        ("plain", "plain", None, "server_error"),
        ({}, "the worker failed", None, "server_error"),
    ],
)
def test_an_error_in_the_middle(error: Any, message: str, code: str | None, final: str) -> None:
    events = told(delta(content="Half"), tool(0, "a", "look", '{"x'), {"error": error})
    assert kinds(events)[-2:] == ["error", "failed"]
    assert "response.output_item.done" not in [event["type"] for event in events]
    assert (events[-2]["message"], events[-2]["code"]) == (message, code)
    assert events[-2]["error"]["message"] == message
    response = events[-1]["response"]
    assert (response["status"], response["error"]) == ("failed", {"code": final, "message": message})
    assert [item["status"] for item in response["output"]] == ["incomplete", "incomplete"]
    assert response["output"][0]["content"][0]["text"] == "Half"


@pytest.mark.parametrize("data", [b"{", b"3", b'"x"', b"[" * 100_000])
def test_data_that_is_no_chunk_fails_the_stream(data: bytes) -> None:
    assert kinds(told(delta(content="x"), data))[-2:] == ["error", "failed"]


def test_an_error_before_anything_else_still_begins_the_response() -> None:
    stream = opened()
    events = events_of(stream.fail(RequestError("the gateway stopped", status=503, code="stopping")))
    assert kinds(events) == ["created", "in_progress", "error", "failed"]


def test_nothing_follows_the_end() -> None:
    stream = opened()
    stream.feed(json.dumps(delta("stop", content="x")).encode())
    assert stream.feed(DONE).endswith(b"\n\n")
    assert stream.feed(json.dumps(delta(content="y")).encode()) == b""
    assert stream.feed(DONE) == stream.close() == stream.fail(RequestError("late")) == b""
