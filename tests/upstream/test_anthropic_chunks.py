"""Anthropic's replies and streams as chat's, read as the gateway reads a worker's answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pointsman.errors import UpstreamError
from pointsman.upstream.anthropic_reply import reply_to_chat
from pointsman.upstream.anthropic_state import seal
from pointsman.upstream.anthropic_stream import StreamToChat
from pointsman.upstream.seen import Seen
from pointsman.upstream.usage import Usage
from tests.support.anthropic_traffic import message, stream_of

THOUGHT = {"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"}
HIDDEN = {"type": "redacted_thinking", "data": "zz"}
TEXT = {"type": "text", "text": "Grüße 👋 to you"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"path": "/tmp/ä", "n": [1, 2.5, None]}}
BARE = {"type": "tool_use", "id": "toolu_2", "name": "g", "input": {}}


def seen_whole(body: dict[str, Any], **more: Any) -> tuple[Seen, dict[str, Any]]:
    made = reply_to_chat(json.dumps(body).encode(), **more)
    seen = Seen()
    seen.whole(made)
    return seen, json.loads(made)


def seen_stream(body: dict[str, Any], size: int = 3) -> tuple[Seen, list[dict[str, Any]]]:
    stream, seen, made = StreamToChat(origin="opus", created=5), Seen(), []
    done = False
    for event in stream_of(body, size):
        for data in stream.feed(event):
            assert not done
            if data == b"[DONE]":
                done = True
            else:
                seen.event(data)
                made.append(json.loads(data))
    assert done
    return seen, made


def test_whole_and_streamed_say_the_same() -> None:
    body = message([THOUGHT, TEXT, CALL, BARE], "tool_use")
    whole, reply = seen_whole(body, origin="opus", created=5)
    streamed, _ = seen_stream(body)
    for seen in (whole, streamed):
        assert seen.completion == TEXT["text"] and seen.reasoning == "Let me see."
        assert seen.tool_call_ids == ["toolu_1", "toolu_2"]
        assert seen.tool_calls is not None
        assert [json.loads(c["function"]["arguments"]) for c in seen.tool_calls] == [CALL["input"], {}]
        assert [c["function"]["name"] for c in seen.tool_calls] == ["f", "g"]
        assert seen.finish_reason == "tool_calls" and seen.finished
        assert (seen.completion_id, seen.model) == ("msg_01XYZ", "claude-test")
        assert seen.usage == Usage(3211, 47, cached=3000)
    assert reply["created"] == 5 and reply["choices"][0]["message"]["thinking_blocks"] == [seal(THOUGHT, "opus")]
    assert reply["choices"][0]["native_finish_reason"] == "tool_use"


def test_the_signature_leaves_sealed() -> None:
    _, made = seen_stream(message([THOUGHT, HIDDEN, TEXT]))
    held = [block for chunk in made for c in chunk["choices"] for block in c["delta"].get("thinking_blocks", ())]
    assert held == [seal(THOUGHT, "opus"), seal(HIDDEN, "opus")]
    assert held[0]["signature"] != "c2ln" and held[0]["thinking"] == THOUGHT["thinking"]


def test_usage_comes_once_at_the_end_with_cached_as_a_part() -> None:
    _, made = seen_stream(message([TEXT]))
    usages = [chunk for chunk in made if chunk.get("usage")]
    assert usages == [made[-1]] and made[-1]["choices"] == []
    assert usages[0]["usage"] == {
        "prompt_tokens": 3211,
        "completion_tokens": 47,
        "total_tokens": 3258,
        "prompt_tokens_details": {"cached_tokens": 3000, "cache_creation_tokens": 200},
    }


def test_thinking_tokens_are_a_part_of_the_output() -> None:
    usage = {"input_tokens": 1, "output_tokens": 40, "output_tokens_details": {"thinking_tokens": 30}}
    assert seen_whole(message([TEXT], usage=usage))[0].usage == Usage(1, 40, reasoning=30)


@pytest.mark.parametrize("usage", [None, {}, {"input_tokens": 3}, "x"])
def test_a_reply_without_counts_has_no_usage(usage: Any) -> None:
    assert seen_whole(message([TEXT], usage=usage))[0].usage is None


@pytest.mark.parametrize(
    ("stop", "finish"),
    [
        ("end_turn", "stop"),
        ("max_tokens", "length"),
        ("stop_sequence", "stop"),
        ("refusal", "content_filter"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "stop"),
        ("something_new", "stop"),
    ],
)
def test_how_it_ended(stop: str, finish: str) -> None:
    body = message([TEXT], stop, stop_sequence="END" if stop == "stop_sequence" else None)
    whole, reply = seen_whole(body)
    streamed, made = seen_stream(body)
    assert whole.finish_reason == streamed.finish_reason == finish
    for choice in (reply["choices"][0], made[-2]["choices"][0]):
        assert choice["native_finish_reason"] == stop
        assert choice.get("stop_sequence") == body["stop_sequence"]


def test_a_layout_stands_beside_an_unusual_order_only() -> None:
    assert "block_layout" not in seen_whole(message([THOUGHT, HIDDEN, TEXT, CALL]))[1]["choices"][0]["message"]
    odd = seen_whole(message([TEXT, THOUGHT, TEXT]))[1]["choices"][0]["message"]
    assert odd["block_layout"] == [len(TEXT["text"]), "thinking", len(TEXT["text"])]


def test_an_input_that_comes_whole_in_the_beginning() -> None:
    stream = StreamToChat()
    start = {"type": "content_block_start", "index": 0, "content_block": CALL}
    made = stream.feed(json.dumps(start).encode()) + stream.feed(b'{"type":"content_block_stop","index":0}')
    seen = Seen()
    for data in made:
        seen.event(data)
    assert seen.tool_calls is not None and json.loads(seen.tool_calls[0]["function"]["arguments"]) == CALL["input"]


@pytest.mark.parametrize(
    ("kind", "text", "fault"),
    [
        ("overloaded_error", "Overloaded", "rate_limited"),
        ("rate_limit_error", "slow down", "rate_limited"),
        ("api_error", "Internal server error", "server"),
        ("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", "context_exceeded"),
        ("invalid_request_error", "max_tokens: too large", "bad_request"),
        ("authentication_error", "invalid x-api-key", "auth"),
        ("timeout_error", "late", "server"),
    ],
)
def test_error_events_and_bodies_are_told_rightly(kind: str, text: str, fault: str) -> None:
    body = json.dumps({"type": "error", "error": {"type": kind, "message": text}}).encode()
    (chunk,) = StreamToChat().feed(body)
    for data, read in ((chunk, Seen().event), (reply_to_chat(body), Seen().whole)):
        with pytest.raises(UpstreamError) as caught:
            read(data)
        assert caught.value.fault == fault
        assert text in (caught.value.body or "")


def test_pings_and_unknown_events_and_blocks_say_nothing() -> None:
    stream = StreamToChat()
    for event in (
        {"type": "ping"},
        {"type": "from_the_future", "x": 1},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "server_tool_use", "id": "s"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_delta", "index": 9, "delta": {"type": "text_delta", "text": "lost"}},
    ):
        assert stream.feed(json.dumps(event).encode()) == []


@pytest.mark.parametrize("data", [b"", b"nonsense", b"[1]", b"{", b'{"type":"message"}', b'{"choices":[]}'])
def test_what_is_no_message_is_malformed(data: bytes) -> None:
    with pytest.raises(UpstreamError) as caught:
        reply_to_chat(data)
    assert caught.value.fault == "malformed"


def test_half_a_surrogate_passes_to_the_reader_after_it() -> None:
    body = json.dumps(message([{"type": "text", "text": "a\ud83d"}])).encode()
    assert seen_whole(json.loads(body))[0].completion == "a\ufffd"
    delta = b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\\ud83d"}}'
    stream = StreamToChat()
    stream.feed(b'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}')
    (chunk,) = stream.feed(delta)
    assert json.loads(chunk)["choices"][0]["delta"]["content"] == "\ud83d"
