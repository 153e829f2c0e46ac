"""Odd JSON at every translator: an answer, or the error that stands for it; never another exception."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.gateway.surfaces.anthropic import ReplyContext, count_tokens, to_chat
from harness.gateway.surfaces.anthropic_reply import from_chat
from harness.gateway.surfaces.anthropic_stream import AnthropicStream
from pointsman.errors import RequestError, UpstreamError
from pointsman.upstream.anthropic import request_of
from pointsman.upstream.anthropic_reply import reply_to_chat
from pointsman.upstream.anthropic_state import betas_of, without_native
from pointsman.upstream.anthropic_stream import StreamToChat
from pointsman.upstream.seen import Seen
from tests.support.anthropic_traffic import chunks, claude_code_request, collect, message, stream_of

ODD = st.recursive(
    st.sampled_from([None, True, 0, -1, 10**30, 1.5, "", " ", "text", "tool_use", "\u2028\x00", [], {}]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "text", "id"]), inner, max_size=2)
    ),
    max_leaves=3,
)
BLOCKS = [
    {"type": "thinking", "thinking": "a", "signature": "b"},
    {"type": "text", "text": "c"},
    {"type": "tool_use", "id": "d", "name": "e", "input": {"f": 1}},
]
quick = settings(max_examples=150, deadline=None, derandomize=True)


def spots(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(spot for key, item in items for spot in spots(item, (*at, key)))]


def with_odd(draw: Any, value: Any) -> Any:
    """`value` with something odd in one place other than the whole."""
    made = json.loads(json.dumps(value))
    spot = draw(st.sampled_from(spots(made)[1:]))
    held = made
    for key in spot[:-1]:
        held = held[key]
    held[spot[-1]] = draw(ODD)
    return made


@quick
@given(st.data())
def test_requests_from_anthropic_clients(data: st.DataObject) -> None:
    body = json.dumps(with_odd(data.draw, claude_code_request())).encode()
    with suppress(RequestError):
        made = to_chat(body)
        assert isinstance(json.loads(made.body)["messages"], list)
    with suppress(RequestError):
        assert count_tokens(body) > 0


@quick
@given(st.data())
def test_requests_to_anthropic_workers(data: st.DataObject) -> None:
    chat = json.loads(to_chat(json.dumps(claude_code_request()).encode()).body)
    chat |= {"stop": ["x"], "reasoning_effort": "low", "response_format": {"type": "json_object"}, "user": "u"}
    odd = with_odd(data.draw, chat)
    if not isinstance(odd["messages"], list) or not all(isinstance(m, dict) for m in odd["messages"]):
        return  # the gateway has refused it
    fields = msgspec.json.decode(msgspec.json.encode(odd), type=dict[str, msgspec.Raw])
    with suppress(UpstreamError):
        assert json.loads(request_of(fields, "m", 1, origin="opus"))["model"] == "m"
    assert "anthropic" not in without_native(fields, reasoning=True) or odd["anthropic"] is None
    betas_of(fields)


def test_fields_that_are_no_json_for_us_are_refused_and_not_a_fault() -> None:
    fields = {"messages": msgspec.Raw(b'[{"role":"user","content":"x"}]'), "tools": msgspec.Raw(b'["\\ud800"]')}
    caught: list[UpstreamError] = []
    for read in (lambda: request_of(fields, "m", 1), lambda: betas_of({"anthropic": fields["tools"]})):
        try:
            read()
        except UpstreamError as error:
            caught.append(error)
    assert [error.fault for error in caught] == ["bad_request", "bad_request"]


@quick
@given(st.data())
def test_replies_of_anthropic_workers(data: st.DataObject) -> None:
    body = json.dumps(with_odd(data.draw, message(BLOCKS, "tool_use"))).encode()
    context = ReplyContext("m", thinking=True)
    with suppress(UpstreamError):
        chat = reply_to_chat(body, origin="opus")
        Seen().whole(chat)
        assert json.loads(from_chat(chat, context))["type"] == "message"


@quick
@given(st.data())
def test_streams_of_anthropic_workers(data: st.DataObject) -> None:
    events = [json.loads(event) for event in stream_of(message(BLOCKS, "tool_use"))]
    inward, outward, seen, sent = StreamToChat(origin="opus"), AnthropicStream(ReplyContext("m")), Seen(), b""
    with suppress(UpstreamError):
        for event in with_odd(data.draw, events):
            for chunk in inward.feed(json.dumps(event).encode()):
                if chunk != b"[DONE]":
                    seen.event(chunk)
                    sent += outward.feed(chunk)
        assert b"message_stop" in sent + outward.finish()


@quick
@given(st.data())
def test_chunks_of_other_workers(data: st.DataObject) -> None:
    call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}
    deltas = [{"reasoning_content": "r"}, {"content": "x", "thinking_blocks": BLOCKS[:1]}, {"tool_calls": [call]}]
    given = [json.loads(chunk) for chunk in chunks(*deltas, usage={"prompt_tokens": 1, "completion_tokens": 1})]
    stream, sent = AnthropicStream(ReplyContext("m", thinking=True)), b""
    for chunk in with_odd(data.draw, given):
        sent += stream.feed(json.dumps(chunk).encode())
    sent += stream.finish()
    if b"event: error" not in sent and b'"partial_json"' not in sent:
        assert collect(sent)["type"] == "message"
