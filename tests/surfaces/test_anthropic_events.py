"""Chat chunks as Anthropic's stream events: one open block at a time, whatever the deltas do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.gateway.surfaces.anthropic import ReplyContext
from harness.gateway.surfaces.anthropic_stream import PING, AnthropicStream
from pointsman.errors import RequestError
from tests.support.anthropic_traffic import chunks, collect, parse_events

CONTEXT = ReplyContext(model="pointsman", stream=True, prompt_tokens=25)
THINKING = ReplyContext(model="pointsman", stream=True, thinking=True)


def events(*deltas: dict[str, Any], context: ReplyContext = CONTEXT, **more: Any) -> bytes:
    stream = AnthropicStream(context)
    return b"".join([stream.feed(chunk) for chunk in chunks(*deltas, **more)]) + stream.finish()


def call(
    index: int | None, arguments: str = "", name: str | None = None, identity: str | None = None
) -> dict[str, Any]:
    delta: dict[str, Any] = {"function": {"arguments": arguments}}
    if name is not None:
        delta["function"]["name"] = name
    if identity is not None:
        delta["id"] = identity
    if index is not None:
        delta["index"] = index
    return {"tool_calls": [delta]}


def tools(message: dict[str, Any]) -> list[tuple[str, str, Any]]:
    return [(b["id"], b["name"], b["input"]) for b in message["content"] if b["type"] == "tool_use"]


def test_the_events_of_a_text() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 60}}
    made = parse_events(
        events({"role": "assistant", "content": ""}, {"content": "Hel"}, {"content": "lo"}, usage=usage)
    )
    assert [name for name, _ in made] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    start = made[0][1]["message"]
    assert start["id"] == "msg_chatcmpl-9" and start["model"] == "m" and start["stop_reason"] is None
    assert start["usage"]["input_tokens"] == 25 and start["usage"]["output_tokens"] == 0
    assert made[1][1] == {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    assert made[5][1]["delta"] == {"stop_reason": "end_turn", "stop_sequence": None}
    assert made[5][1]["usage"] == {
        "input_tokens": 40,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 60,
        "output_tokens": 7,
    }


def test_text_is_passed_on_chunk_by_chunk() -> None:
    stream = AnthropicStream(CONTEXT)
    sent = [stream.feed(chunk) for chunk in chunks({"content": "a"}, {"content": "b"}, finish=None)]
    assert b'"a"' in sent[0] and b'"b"' in sent[1]


def test_a_call_whose_name_comes_in_fragments() -> None:
    made = collect(
        events(
            call(0, name="get_", identity="call_1"), call(0, name="weather"), call(0, '{"city":'), call(0, '"Oslo"}')
        )
    )
    assert tools(made) == [("call_1", "get_weather", {"city": "Oslo"})]
    assert made["stop_reason"] == "tool_use"  # though the worker said "stop"


def test_parallel_calls_by_index() -> None:
    made = collect(
        events(
            {"content": "I call."},
            call(0, name="f", identity="a"),
            call(0, '{"x":1}'),
            call(1, name="g", identity="b"),
            call(1, '{"y":2}'),
            finish="tool_calls",
        )
    )
    assert [block["type"] for block in made["content"]] == ["text", "tool_use", "tool_use"]
    assert tools(made) == [("a", "f", {"x": 1}), ("b", "g", {"y": 2})]


def test_parallel_calls_whose_deltas_mix() -> None:
    made = collect(
        events(
            call(0, name="f", identity="a"),
            call(1, name="g", identity="b"),
            call(0, '{"x"'),
            call(1, '{"y"'),
            call(0, ":1}"),
            call(1, ":2}"),
        )
    )
    assert tools(made) == [("a", "f", {"x": 1}), ("b", "g", {"y": 2})]


def test_a_new_id_under_the_same_index_is_a_new_call() -> None:
    made = collect(events(call(0, '{"x":1}', "f", "a"), call(0, '{"y":2}', "g", "b")))
    assert tools(made) == [("a", "f", {"x": 1}), ("b", "g", {"y": 2})]


def test_calls_without_index_or_id_or_arguments() -> None:
    made = collect(events(call(None, '{"x":', "f"), call(None, "1}")))
    assert tools(made) == [("toolu_msg_chatcmpl-9_0", "f", {"x": 1})]
    made = collect(events(call(0, "", "now", "a"), call(1, "{}", "g", "b")))
    assert tools(made) == [("a", "now", {}), ("b", "g", {})]


def test_a_call_begins_before_its_arguments_are_whole() -> None:
    stream = AnthropicStream(CONTEXT)
    sent = [stream.feed(chunk) for chunk in chunks(call(0, '{"x"', "f", "a"), call(0, ":1}"), finish=None)]
    assert b'"name":"f"' in sent[0] and b"partial_json" in sent[0] and b"partial_json" in sent[1]


def test_text_after_a_call_is_a_block_of_its_own() -> None:
    made = collect(events(call(0, "{}", "f", "a"), {"content": "done"}, {"content": "."}))
    assert [block["type"] for block in made["content"]] == ["tool_use", "text"]
    assert made["content"][1]["text"] == "done."


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_thinking_for_a_client_that_asked(field: str) -> None:
    deltas = [{field: "hm"}, {field: "m"}, {"content": "yes"}, {field: "", "content": ""}, {"content": "!"}]
    made = collect(events(*deltas, context=THINKING))
    assert made["content"] == [
        {"type": "thinking", "thinking": "hmm", "signature": ""},
        {"type": "text", "text": "yes!"},
    ]
    made = collect(events(*deltas))
    assert made["content"] == [{"type": "text", "text": "yes!"}]


@pytest.mark.parametrize("context", [CONTEXT, THINKING])
def test_signed_thinking_is_always_shown(context: ReplyContext) -> None:
    block = {"type": "thinking", "thinking": "hmm", "signature": "sig"}
    hidden = {"type": "redacted_thinking", "data": "zz"}
    made = collect(
        events(
            {"reasoning_content": "hmm"},
            {"thinking_blocks": [block]},
            {"thinking_blocks": [hidden]},
            {"reasoning_content": "again"},
            {"thinking_blocks": [{**block, "thinking": "again"}]},
            {"content": "yes"},
            context=context,
        )
    )
    assert made["content"] == [block, hidden, {**block, "thinking": "again"}, {"type": "text", "text": "yes"}]


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("stop", "end_turn"),
        ("length", "max_tokens"),
        ("content_filter", "refusal"),
        (None, "end_turn"),
        ("odd", "end_turn"),
    ],
)
def test_how_it_ended(finish: str | None, reason: str) -> None:
    assert collect(events({"content": "x"}, finish=finish))["stop_reason"] == reason


def test_a_call_that_was_cut_is_no_tool_use() -> None:
    made = parse_events(events(call(0, '{"x":', "f", "a"), finish="length"))
    assert made[-2][1]["delta"]["stop_reason"] == "max_tokens"


def test_a_refusal_in_words() -> None:
    made = collect(events({"refusal": "I will "}, {"refusal": "not."}))
    assert made["content"] == [{"type": "text", "text": "I will not."}] and made["stop_reason"] == "refusal"


def test_usage_is_estimated_where_the_worker_gave_none() -> None:
    usage = collect(events({"content": "x" * 41}))["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (25, 11)


def test_a_stream_without_a_chunk_is_still_a_message() -> None:
    assert collect(AnthropicStream(CONTEXT).finish())["content"] == []


def test_other_choices_are_not_mixed_in() -> None:
    stream = AnthropicStream(CONTEXT)
    body = {"id": "c", "choices": [{"index": 1, "delta": {"content": "no"}}, {"index": 0, "delta": {"content": "yes"}}]}
    made = collect(stream.feed(json.dumps(body).encode()) + stream.finish())
    assert made["content"] == [{"type": "text", "text": "yes"}]


def test_an_error_ends_the_stream_without_a_message_stop() -> None:
    stream = AnthropicStream(CONTEXT)
    stream.feed(next(iter(chunks({"content": "x"}))))
    error = {"error": {"message": "Overloaded", "type": "overloaded_error", "code": "overloaded_error"}}
    sent = stream.feed(json.dumps(error).encode())
    assert parse_events(sent) == [
        ("error", {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    ]
    assert stream.finish() == b"" and stream.fail(RequestError("x")) == b""
    assert stream.feed(next(iter(chunks({"content": "y"})))) == b""


def test_a_fault_of_the_gateway_ends_it_the_same_way() -> None:
    stream = AnthropicStream(CONTEXT)
    sent = parse_events(stream.fail(RequestError("the gap limit passed", status=504)))
    assert sent == [("error", {"type": "error", "error": {"type": "timeout_error", "message": "the gap limit passed"}})]
    assert stream.finish() == b""


@pytest.mark.parametrize(
    "delta", [{"tool_calls": ["x", {"function": 3}]}, {"content": 7}, {"thinking_blocks": [1]}, None]
)
def test_odd_deltas_do_no_harm(delta: Any) -> None:
    made = collect(events(delta, {"content": "ok"}))
    assert made["content"][-1] == {"type": "text", "text": "ok"}


def test_a_ping_is_an_event() -> None:
    assert parse_events(PING) == [("ping", {"type": "ping"})]
