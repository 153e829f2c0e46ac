"""Chat streams as Responses streams: order and indices, and every event by OpenAI's own types."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from harness.gateway.surfaces.responses import ResponsesStream, from_chat, to_chat

DECISION = "0199a3c4-5e6f-7a8b-9c0d-1e2f3a4b5c6d"
STEM = "0199a3c45e6f7a8b9c0d1e2f3a4b5c6d"
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


def calls_of(events: list[Event]) -> list[tuple[str, str, str]]:
    output = events[-1]["response"]["output"]
    return [(item["call_id"], item["name"], item["arguments"]) for item in output if item["type"] == "function_call"]


DONE = b"[DONE]"


def test_a_text_event_by_event() -> None:
    events = told(delta(role="assistant", content=""), delta(content="Hel"), delta(content="lo"), delta("stop"), DONE)
    assert kinds(events) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    created, added, part, done = events[0]["response"], events[2], events[4], events[-1]["response"]
    assert (created["status"], created["output"], created["usage"]) == ("in_progress", [], None)
    assert created["id"] == done["id"] == f"resp_{STEM}"
    assert added["item"] == {
        "id": f"msg_{STEM}00",
        "type": "message",
        "status": "in_progress",
        "role": "assistant",
        "content": [],
    }
    assert {name: part[name] for name in ("item_id", "output_index", "content_index", "delta", "logprobs")} == {
        "item_id": f"msg_{STEM}00",
        "output_index": 0,
        "content_index": 0,
        "delta": "Hel",
        "logprobs": [],
    }
    assert events[6]["text"] == "Hello"
    assert done["output"] == [events[8]["item"]]
    assert done["output"][0]["content"][0]["text"] == "Hello"
    assert (done["status"], done["model"], done["completed_at"]) == ("completed", "small-1", 5)


def test_the_first_chunk_tells_the_beginning_at_once() -> None:
    stream = opened()
    assert kinds(events_of(stream.feed(json.dumps(delta(role="assistant")).encode()))) == ["created", "in_progress"]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, ["content_part.added", "reasoning_text.delta", "reasoning_text.done", "content_part.done"]),
        (
            {"reasoning": {"summary": "auto"}},
            [
                "reasoning_summary_part.added",
                "reasoning_summary_text.delta",
                "reasoning_summary_text.done",
                "reasoning_summary_part.done",
            ],
        ),
    ],
)
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_ends_where_the_text_begins(asked: Any, expected: list[str], field: str) -> None:
    events = told(delta(**{field: "Hm."}), delta(content="x"), delta("stop"), DONE, **asked)
    assert kinds(events)[2:9] == ["output_item.added", *expected, "output_item.done", "output_item.added"]
    assert [item["type"] for item in events[-1]["response"]["output"]] == ["reasoning", "message"]


def test_reasoning_between_other_items_is_told_anew() -> None:
    events = told(delta(reasoning="A"), delta(content="b"), delta(reasoning="C"), delta(content="d"), DONE)
    output = events[-1]["response"]["output"]
    assert [item["type"] for item in output] == ["reasoning", "message", "reasoning"]
    assert output[1]["content"][0]["text"] == "bd"
    assert [output[i]["content"][0]["text"] for i in (0, 2)] == ["A", "C"]


def test_parallel_calls_interleave() -> None:
    events = told(
        tool(0, "a", "look", ""),
        tool(0, None, None, '{"x"'),
        tool(1, "b", "find", "{}"),
        tool(0, None, None, ":1}"),
        delta("tool_calls"),
        DONE,
    )
    assert calls_of(events) == [("a", "look", '{"x":1}'), ("b", "find", "{}")]
    pieces = [(e["output_index"], e["delta"]) for e in events if e["type"].endswith("arguments.delta")]
    assert pieces == [(0, '{"x"'), (1, "{}"), (0, ":1}")]
    done = [e for e in events if e["type"].endswith("arguments.done")]
    assert [(e["output_index"], e["arguments"]) for e in done] == [(0, '{"x":1}'), (1, "{}")]


def test_two_ids_at_index_0_are_two_calls() -> None:
    events = told(tool(0, "a", "look", '{"x":1}'), tool(0, "b", "look", '{"x":2}'), delta("tool_calls"), DONE)
    assert calls_of(events) == [("a", "look", '{"x":1}'), ("b", "look", '{"x":2}')]


def test_an_id_on_every_delta_is_one_call() -> None:
    events = told(tool(0, "a", "look", '{"x"'), tool(0, "a", "look", ":1}"), DONE)
    assert calls_of(events) == [("a", "look", '{"x":1}')]


def test_a_name_on_every_delta_is_told_once() -> None:
    events = told(tool(0, "a", "look", ""), tool(0, "a", "look", "{"), tool(0, None, "look", "}"), DONE)
    assert calls_of(events) == [("a", "look", "{}")]


def test_calls_without_an_index_go_by_their_ids() -> None:
    events = told(tool(None, "a", "look", "{"), tool(None, None, None, "}"), tool(None, "b", "find", "{}"), DONE)
    assert calls_of(events) == [("a", "look", "{}"), ("b", "find", "{}")]


def test_a_name_in_pieces_is_told_whole() -> None:
    events = told(tool(0, "a", "get_"), tool(0, None, "weather"), tool(0, None, None, "{}"), DONE)
    added = next(e for e in events if e["type"] == "response.output_item.added")
    assert added["item"]["name"] == "get_weather"
    assert calls_of(events) == [("a", "get_weather", "{}")]


def test_a_call_without_arguments_is_told_all_the_same() -> None:
    events = told(tool(0, "a", "now"), tool(1, "b", "then"), delta("tool_calls"), DONE)
    assert calls_of(events) == [("a", "now", ""), ("b", "then", "")]
    assert [e["output_index"] for e in events if e["type"] == "response.output_item.added"] == [0, 1]


def test_a_call_without_an_id_gets_one() -> None:
    assert calls_of(told(tool(0, None, "now", "{}"), DONE)) == [(f"call_{STEM}00", "now", "{}")]


def test_text_and_calls_interleaved() -> None:
    events = told(delta(content="One. "), tool(0, "a", "look"), delta(content="Two."), tool(0, None, None, "{}"), DONE)
    output = events[-1]["response"]["output"]
    assert [item["type"] for item in output] == ["message", "function_call"]
    assert output[0]["content"][0]["text"] == "One. Two."
    assert [e["output_index"] for e in events if e["type"] == "response.output_item.done"] == [0, 1]


def test_a_free_form_call_is_told_in_one_piece() -> None:
    tools = [{"type": "custom", "name": "patch"}]
    events = told(tool(0, "c", "patch", '{"inp'), tool(0, None, None, 'ut":"a\\nb"}'), DONE, tools=tools)
    assert kinds(events)[2:] == [
        "output_item.added",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "output_item.done",
        "completed",
    ]
    assert events[3]["delta"] == events[4]["input"] == events[5]["item"]["input"] == "a\nb"
    assert events[2]["item"]["input"] == ""


def test_a_refusal_after_text() -> None:
    events = told(delta(content="Well, "), delta(refusal="no."), delta("stop"), DONE)
    (item,) = events[-1]["response"]["output"]
    assert [part["type"] for part in item["content"]] == ["output_text", "refusal"]
    assert item["content"][1]["refusal"] == "no."
    assert next(e for e in events if e["type"] == "response.refusal.delta")["content_index"] == 1


def test_other_choices_are_left_out() -> None:
    events = told(delta(content="a"), delta(index=1, content="b"), delta("stop"), delta("length", index=1), DONE)
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "a"
    assert events[-1]["type"] == "response.completed"


def test_odd_chunks_are_harmless() -> None:
    odd: list[Any] = [
        {},
        {"choices": None},
        {"choices": ["x"]},
        {"choices": [{"delta": None}]},
        delta(content=3, tool_calls="x", reasoning=[1]),
        delta(tool_calls=[None, {"index": 0, "function": None}]),
        {"usage": "x", "choices": [], "model": 3},
    ]
    events = told(*odd, delta(content="x"), DONE)
    assert events[-1]["response"]["output"][-1]["content"][0]["text"] == "x"


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85"])
def test_no_event_is_cut_by_readers_that_split_as_unicode_does(separator: str) -> None:
    text = f"a{separator}b"
    stream = opened()
    data = stream.feed(json.dumps(delta(content=text)).encode())
    assert separator.encode() not in data
    assert events_of(data)[-1]["delta"] == text


def test_log_probabilities_of_deltas() -> None:
    chunk = delta(content="a")
    chunk["choices"][0]["logprobs"] = {"content": [{"token": "a", "logprob": -0.1, "top_logprobs": []}]}
    events = told(chunk, DONE, top_logprobs=1)
    expected = [{"token": "a", "bytes": [97], "logprob": -0.1, "top_logprobs": []}]
    assert next(e for e in events if e["type"].endswith("text.delta"))["logprobs"] == expected
    assert events[-1]["response"]["output"][0]["content"][0]["logprobs"] == expected


@given(
    text=st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), max_size=4),
    reasoning=st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), max_size=3),
    calls=st.lists(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1), max_size=3),
    finish=st.sampled_from(["stop", "length"]),
    rounds=st.randoms(use_true_random=False),
)
@settings(max_examples=60, deadline=None)
def test_a_stream_ends_as_its_whole_reply_would(
    text: list[str], reasoning: list[str], calls: list[list[str]], finish: str, rounds: Any
) -> None:
    """However calls interleave, the last event holds the object that the JSON answer is."""
    queues = [
        [tool(n, f"id{n}", "look"), *(tool(n, None, None, piece) for piece in pieces)] for n, pieces in enumerate(calls)
    ]
    chunks = [delta(reasoning=piece) for piece in reasoning] + [delta(content=piece) for piece in text]
    chunks += [queue.pop(0) for queue in queues]
    while any(queues):
        chunks.append(rounds.choice([queue for queue in queues if queue]).pop(0))
    message = {
        "content": "".join(text),
        "reasoning": "".join(reasoning),
        "tool_calls": [
            {"id": f"id{n}", "function": {"name": "look", "arguments": "".join(pieces)}}
            for n, pieces in enumerate(calls)
        ],
    }
    reply = {"model": "small-1", "choices": [{"message": message, "finish_reason": finish}]}
    context = to_chat(b'{"model":"pointsman","input":"hi","stream":true}').context
    whole = json.loads(from_chat(reply, context, identity=DECISION, created_at=1_760_000_000.0, clock=lambda: 5.0))
    assert told(*chunks, delta(finish), DONE)[-1]["response"] == whole
