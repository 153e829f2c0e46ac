"""Both ends together: the surface over an Anthropic-native worker gives back what was sent.

Requests: Anthropic → chat → Anthropic, and chat → Anthropic → chat. Replies: a worker's blocks, whole and
streamed, reach the client as the same blocks, and come back to the worker with the signatures it made.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.gateway.request import parse_chat
from harness.gateway.surfaces.anthropic import ReplyContext, to_chat
from harness.gateway.surfaces.anthropic_reply import from_chat
from harness.gateway.surfaces.anthropic_stream import AnthropicStream
from pointsman.upstream.anthropic import request_of
from pointsman.upstream.anthropic_reply import reply_to_chat
from pointsman.upstream.anthropic_stream import StreamToChat
from pointsman.upstream.seen import Seen
from tests.support.anthropic_traffic import collect, message, stream_of

CONTEXT = ReplyContext(model="pointsman", stop_sequences=("END",), thinking=True)
ASK = {"role": "user", "content": [{"type": "text", "text": "ask"}]}
THOUGHT = {"type": "thinking", "thinking": "Let me see.", "signature": "c2lnbmF0dXJl"}
SECOND = {"type": "thinking", "thinking": "And then.", "signature": "c2Vjb25k"}
SILENT = {"type": "thinking", "thinking": "", "signature": "b21pdHRlZA=="}
HIDDEN = {"type": "redacted_thinking", "data": "cmVkYWN0ZWQ="}
TEXT = {"type": "text", "text": "Grüße 👋"}
MORE = {"type": "text", "text": "more"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"path": "ä/b", "n": [1, 2.5, None, {}]}}
BARE = {"type": "tool_use", "id": "toolu_2", "name": "g", "input": {}}
ORDERS = [
    [TEXT],
    [CALL],
    [TEXT, CALL, BARE],
    [THOUGHT, TEXT],
    [THOUGHT, HIDDEN, TEXT, CALL],
    [HIDDEN, CALL],
    [SILENT, TEXT],
    [THOUGHT, SECOND, CALL, BARE],
    [THOUGHT, TEXT, SECOND, MORE, CALL],
    [TEXT, HIDDEN, MORE],
    [CALL, TEXT],
    [],
]

words = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12).filter(lambda t: t.strip() != "")
values = st.recursive(
    st.none() | st.booleans() | st.integers() | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)
names = st.text("abcdefgh_", min_size=1, max_size=8)
texts = st.builds(lambda text: {"type": "text", "text": text}, words)
images = st.sampled_from(
    [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
    ]
)
objects = st.dictionaries(names, values, max_size=3)


@st.composite
def loops(draw: st.DrawFn) -> list[dict[str, Any]]:
    """An assistant's calls, in any order among its texts, and the user message that answers them."""
    count = draw(st.integers(1, 3))
    first = draw(st.integers(0, 10**6))
    calls = [
        {"type": "tool_use", "id": f"toolu_{first + n}", "name": draw(names), "input": draw(objects)}
        for n in range(count)
    ]
    blocks = draw(st.permutations([*calls, *draw(st.lists(texts, max_size=2))]))
    results: list[dict[str, Any]] = []
    for call in calls:
        shown = [*draw(st.lists(texts, max_size=1)), *draw(st.lists(images, max_size=2))]
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call["id"], "content": shown}
        if draw(st.booleans()):
            result["is_error"] = True
        results.append(result)
    said = draw(st.lists(texts | images, max_size=2))
    return [{"role": "assistant", "content": blocks}, {"role": "user", "content": [*results, *said]}]


conversations = st.lists(loops(), max_size=2).map(lambda made: [ASK, *(turn for loop in made for turn in loop)])


def through(body: dict[str, Any], origin: str = "opus") -> dict[str, Any]:
    """Anthropic → chat → the core's reading → Anthropic."""
    request = parse_chat(to_chat(json.dumps(body).encode()).body, [])
    made: dict[str, Any] = json.loads(request_of(request.fields, body["model"], 1, origin=origin))
    return made


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    messages=conversations,
    system=st.lists(texts, max_size=2),
    fields=st.fixed_dictionaries(
        {},
        optional={
            "temperature": st.sampled_from([0, 0.5, 1]),
            "top_k": st.integers(1, 9),
            "stop_sequences": st.lists(words, min_size=1, max_size=2),
            "stream": st.just(True),
            "metadata": st.just({"user_id": "u"}),
            "thinking": st.just({"type": "adaptive"}),
            "output_config": st.just({"effort": "low"}),
        },
    ),
    choice=st.sampled_from(
        [None, {"type": "any"}, {"type": "tool", "name": "f"}, {"type": "auto", "disable_parallel_tool_use": True}]
    ),
)
def test_an_anthropic_request_comes_through_as_it_was(
    messages: list[dict[str, Any]], system: list[dict[str, Any]], fields: dict[str, Any], choice: Any
) -> None:
    tool = {"name": "f", "description": "d", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}
    body = {"model": "m", "max_tokens": 9, "messages": messages, "tools": [tool], **fields}
    if len(system) != 1 and system:
        body["system"] = system
    elif system:
        body["system"] = system[0]["text"]
    if choice:
        body["tool_choice"] = choice
    assert through(body) == body


@settings(max_examples=60, deadline=None, derandomize=True)
@given(messages=conversations, stop=st.none() | st.lists(words, min_size=1, max_size=2), cap=st.integers(1, 99))
def test_a_chat_request_keeps_its_meaning(messages: list[dict[str, Any]], stop: Any, cap: int) -> None:
    once = json.loads(to_chat(json.dumps({"model": "m", "max_tokens": cap, "messages": messages}).encode()).body)
    if stop:
        once["stop"] = stop
    native = json.loads(request_of(once, "m", 1))
    again = json.loads(to_chat(json.dumps(native).encode()).body)
    plain = [turn if turn["content"] != "" else {**turn, "content": None} for turn in once["messages"]]
    back = [turn if turn["content"] != "" else {**turn, "content": None} for turn in again["messages"]]
    assert back == plain
    assert (again["max_tokens"], again.get("stop")) == (cap, stop)


def whole(blocks: list[dict[str, Any]], stop: str, **more: Any) -> dict[str, Any]:
    chat = reply_to_chat(json.dumps(message(blocks, stop, **more)).encode(), origin="opus")
    Seen().whole(chat)
    made: dict[str, Any] = json.loads(from_chat(chat, CONTEXT))
    return made


def streamed(blocks: list[dict[str, Any]], stop: str, size: int = 3, **more: Any) -> dict[str, Any]:
    """Through both translators; the size says how finely the texts are cut."""
    inward, outward, events = StreamToChat(origin="opus"), AnthropicStream(CONTEXT), b""
    for data in stream_of(message(blocks, stop, **more), size):
        for chunk in inward.feed(data):
            events += outward.finish() if chunk == b"[DONE]" else outward.feed(chunk)
    assert events.endswith(b'event: message_stop\ndata: {"type":"message_stop"}\n\n')
    return collect(events)


def stop_for(blocks: list[dict[str, Any]]) -> str:
    return "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"


@pytest.mark.parametrize("blocks", ORDERS)
@pytest.mark.parametrize("reply", [whole, streamed])
def test_a_worker_gets_its_blocks_back_as_it_made_them(blocks: list[dict[str, Any]], reply: Any) -> None:
    made = reply(blocks, stop_for(blocks))
    original = message(blocks, stop_for(blocks))
    assert [block["type"] for block in made["content"]] == [block["type"] for block in blocks]
    assert {**made, "content": None} == {**original, "content": None}
    body = {"model": "m", "max_tokens": 9, "messages": [ASK, {"role": "assistant", "content": made["content"]}, ASK]}
    expected = [ASK, {"role": "assistant", "content": blocks}, ASK]
    if not blocks:
        expected = [{"role": "user", "content": [*ASK["content"], *ASK["content"]]}]
    assert through(body)["messages"] == expected
    others = [block for block in blocks if "thinking" not in block["type"]]
    if others:
        assert through(body, origin="haiku")["messages"][1]["content"] == others


@pytest.mark.parametrize(
    ("stop", "sequence"),
    [("max_tokens", None), ("refusal", None), ("stop_sequence", "END"), ("pause_turn", None), ("end_turn", None)],
)
@pytest.mark.parametrize("reply", [whole, streamed])
def test_how_it_ended_comes_through(stop: str, sequence: str | None, reply: Any) -> None:
    made = reply([TEXT], stop, stop_sequence=sequence)
    assert (made["stop_reason"], made["stop_sequence"]) == (stop, sequence)


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_however_finely_a_stream_is_cut(size: int) -> None:
    blocks = [THOUGHT, TEXT, CALL]
    made = streamed(blocks, "tool_use", size)
    assert made["content"][1:] == blocks[1:] and made["content"][0]["thinking"] == THOUGHT["thinking"]


def test_a_chat_clients_history_reaches_the_worker_and_another_does_not_get_the_signature() -> None:
    """An OpenAI client that sends the assistant message back as it came."""
    reply = json.loads(reply_to_chat(json.dumps(message([THOUGHT, TEXT, CALL], "tool_use")).encode(), origin="opus"))
    turn = reply["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": "toolu_1", "content": "1"}
    fields = {
        "messages": msgspec.Raw(msgspec.json.encode([{"role": "user", "content": "ask"}, turn, result])),
    }
    assert json.loads(request_of(fields, "m", 1, origin="opus"))["messages"][1]["content"] == [THOUGHT, TEXT, CALL]
    assert json.loads(request_of(fields, "m", 1, origin="haiku"))["messages"][1]["content"] == [TEXT, CALL]
