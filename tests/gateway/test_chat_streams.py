"""Streams: events arrive as they were sent, however they were cut; usage, endings and tool calls are read right."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

TEXT = "你好🌍 “x” \u2028 é"
USAGE = {"include_usage": True}


def body_of(fake, *, newline=b"\n", extras=True):
    events = [fake.ROLE] + [fake.event(fake.delta(content=part)) for part in TEXT.split(" ")]
    if extras:
        events.insert(0, b": PROCESSING\n\n")
        events.insert(2, b"retry: 3000\n\n")
        events.insert(3, b": ping\n\n")
    events += [fake.event(fake.delta(finish="stop")), fake.event(fake.usage_chunk()), fake.DONE]
    return b"".join(events).replace(b"\n", newline)


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 100_000])
def test_any_cut_gives_the_same_bytes(gateway, upstream, fake, newline, size):
    sent = body_of(fake, newline=newline)
    upstream.script("m-alpha", fake.stream([sent[n : n + size] for n in range(0, len(sent), size)]))
    with gateway.streaming(stream_options=None) as answer:
        got = answer.read()
    usage = fake.event(fake.usage_chunk()).replace(b"\n", newline)
    done = fake.DONE.replace(b"\n", newline)
    assert got == sent.replace(usage, b"").replace(done, b"") + fake.DONE
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    record = gateway.record(answer)
    assert record["outcome"]["status"] == "ok"
    assert record["calls"][0]["completion"] == TEXT.replace(" ", "")
    assert record["calls"][0]["first_token_ms"] > 0


def test_one_event_cut_at_every_byte(gateway, upstream, fake):
    one = fake.event(fake.delta(content="é🌍"))
    rest = fake.event(fake.delta(finish="stop")) + fake.DONE
    for cut in range(1, len(one)):
        upstream.script("m-alpha", fake.stream([one[:cut], one[cut:], rest]))
        with gateway.streaming() as answer:
            assert answer.read() == one + rest


def test_a_bom_before_the_first_event_is_dropped(gateway, upstream, running, fake):
    for pieces in ([b"\xef\xbb\xbf" + fake.words("a", "b")], [b"\xef", b"\xbb\xbf", fake.words("a", "b")]):
        upstream.script("m-alpha", fake.stream(pieces))
        with gateway.streaming() as answer:
            assert answer.read().startswith(b"data: {")
            assert running.contents(answer) == "ab"


def test_unknown_fields_and_late_empty_reasoning_pass(gateway, upstream, fake):
    chunks = [
        fake.event(fake.delta(content="a", reasoning_items=[{"x": 1}], foo="bar")),
        fake.event(fake.delta(reasoning_content="", content="b")),
        b'event: message\nid: 7\ndata: {"choices":[{"index":1,"delta":{"content":"c"},"finish_reason":"stop"}]}\n\n',
        fake.event(fake.delta(finish="stop")),
    ]
    upstream.script("m-alpha", fake.stream([*chunks, fake.DONE]))
    with gateway.streaming() as answer:
        assert answer.read() == b"".join(chunks) + fake.DONE
    assert gateway.record(answer)["calls"][0]["completion"] == "ab"


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
@pytest.mark.parametrize("streamed", [True, False])
def test_reasoning_under_both_names_is_kept_apart(gateway, upstream, fake, name, streamed):
    if streamed:
        parts = [fake.event(fake.delta(**{name: "thin"})), fake.event(fake.delta(**{name: "king"}, content="so"))]
        upstream.script("m-alpha", fake.stream([*parts, fake.event(fake.delta(finish="stop")), fake.DONE]))
        with gateway.streaming() as answer:
            answer.read()
    else:
        upstream.script("m-alpha", fake.reply(fake.completion("so", message={name: "thinking"})))
        answer = gateway.chat("x")
    call = gateway.record(answer)["calls"][0]
    assert (call["completion"], call["reasoning"]) == ("so", "thinking")


def test_only_reasoning_is_content(gateway, upstream, fake):
    stream = fake.ROLE + fake.event(fake.delta(reasoning="hm")) + fake.event(fake.delta(finish="length")) + fake.DONE
    upstream.script("m-alpha", fake.stream(stream))
    with gateway.streaming() as answer:
        assert answer.read() == stream
    call = gateway.record(answer)["calls"][0]
    assert (call["completion"], call["reasoning"], call["finish_reason"]) == (None, "hm", "length")


USAGE_PLACES = {
    "own last chunk": lambda f: [f.delta(content="a"), f.delta(finish="stop"), f.usage_chunk()],
    "before an empty last": lambda f: [
        f.delta(content="a"),
        f.delta(finish="stop"),
        f.usage_chunk(),
        {**f.delta(), "choices": []},
    ],
    "with the ending": lambda f: [
        f.delta(content="a"),
        {**f.delta(finish="stop"), "usage": f.usage_chunk()["usage"]},
    ],
    "on every chunk": lambda f: [
        {**f.delta(content="a"), "usage": {"prompt_tokens": 10, "completion_tokens": 1}},
        {**f.delta(finish="stop"), "usage": f.usage_chunk()["usage"]},
    ],
    "first of all": lambda f: [f.usage_chunk(), f.delta(content="a"), f.delta(finish="stop")],
    "after a null": lambda f: [
        {**f.delta(content="a"), "usage": None},
        {**f.delta(finish="stop"), "usage": None},
        f.usage_chunk(),
    ],
}


@pytest.mark.parametrize("place", USAGE_PLACES)
@pytest.mark.parametrize("asked", [True, False])
def test_usage_is_read_anywhere_and_told_only_when_asked(gateway, upstream, running, fake, place, asked):
    chunks = USAGE_PLACES[place](fake)
    upstream.script("m-alpha", fake.stream([fake.event(chunk) for chunk in chunks] + [fake.DONE]))
    with gateway.streaming(stream_options=USAGE if asked else None) as answer:
        got = [json.loads(data) for data in running.events(answer)[:-1]]
    assert upstream.calls[0].json["stream_options"] == USAGE
    call = gateway.record(answer)["calls"][0]
    assert (call["input_tokens"], call["output_tokens"], call["usage_estimated"]) == (10, 5, False)
    assert Decimal(call["cost"]) == Decimal("0.00007")
    alone = [chunk for chunk in got if not chunk["choices"] and chunk.get("usage")]
    if asked:
        assert all("usage" in chunk for chunk in got)
        assert [chunk["usage"] for chunk in got if chunk["usage"]][-1]["prompt_tokens"] == 10
    else:
        assert alone == []


def test_usage_after_done_is_read(gateway, upstream, running, fake):
    early = fake.event(fake.delta(content="a", finish="stop")) + fake.DONE + fake.event(fake.usage_chunk(3, 2))
    upstream.script("m-alpha", fake.stream(early))
    with gateway.streaming() as answer:
        assert running.events(answer)[-1] == "[DONE]"
    call = gateway.record(answer)["calls"][0]
    assert (call["input_tokens"], call["output_tokens"]) == (3, 2)


ENDINGS = {
    "finish, no [DONE]": (lambda f: f.event(f.delta(content="a", finish="stop")), "ok", None),
    "[DONE], no finish": (lambda f: f.event(f.delta(content="a")) + f.DONE, "ok", "no finish_reason"),
    "spaced [DONE]": (lambda f: f.event(f.delta(content="a", finish="stop")) + b"data:  [DONE] \n\n", "ok", None),
    "neither": (lambda f: f.event(f.delta(content="a")), "truncated", "truncated: the stream ended"),
    "no last blank line": (lambda f: f.event(f.delta(content="a", finish="stop")).rstrip(), "ok", None),
    "finish repeated empty": (
        lambda f: f.event(f.delta(content="a", finish="stop")) + f.event(f.delta()),
        "ok",
        None,
    ),
    "half an event": (lambda f: f.event(f.delta(content="a")) + b'data: {"choi', "truncated", "malformed"),
    "one of two choices": (
        lambda f: f.event(f.delta(content="a", finish="stop")) + f.event(f.delta(1, content="b")),
        "truncated",
        "truncated",
    ),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_how_a_stream_ended(gateway, upstream, running, fake, name):
    make, status, reason = ENDINGS[name]
    upstream.script("m-alpha", fake.stream(make(fake)))
    with gateway.streaming() as answer:
        data = running.events(answer)
    outcome = gateway.record(answer)["outcome"]
    assert outcome["status"] == status
    assert (outcome["reason"] or "").startswith(reason or "") and bool(reason) == bool(outcome["reason"])
    if status == "ok":
        assert data[-1] == "[DONE]"
    else:
        assert "[DONE]" not in data
        assert json.loads(data[-1])["error"]["code"] in ("truncated", "malformed")


def test_done_ends_the_answer_though_the_worker_stays(gateway, upstream, running, fake):
    upstream.script("m-alpha", fake.stream(fake.words("a"), ending="hang"))
    with gateway.streaming() as answer:
        assert running.events(answer)[-1] == "[DONE]"
    assert gateway.record(answer)["outcome"]["status"] == "ok"
    upstream.wait_left(upstream.calls[0])


TOOLS = {
    "by index": (
        [
            [{"index": 0, "id": "a", "type": "function", "function": {"name": "get_", "arguments": ""}}],
            [{"index": 0, "function": {"name": "weather", "arguments": '{"c'}}],
            [{"index": 1, "id": "b", "function": {"name": "now", "arguments": "{}"}}],
            [{"index": 0, "function": {"arguments": '":1}'}}],
        ],
        [("a", "get_weather", '{"c":1}'), ("b", "now", "{}")],
    ),
    "all of index 0": (
        [
            [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}],
            [{"index": 0, "id": "b", "function": {"name": "g", "arguments": "{"}}],
            [{"index": 0, "function": {"arguments": "}"}}],
        ],
        [("a", "f", "{}"), ("b", "g", "{}")],
    ),
    "id repeated": (
        [
            [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}}],
            [{"index": 0, "id": "a", "function": {"name": None, "arguments": "}"}}],
        ],
        [("a", "f", "{}")],
    ),
    "two in one": (
        [[{"index": 0, "id": "a", "function": {"name": "f"}}, {"index": 1, "id": "b", "function": {"name": "g"}}]],
        [("a", "f", ""), ("b", "g", "")],
    ),
}


@pytest.mark.parametrize("name", TOOLS)
def test_fragments_of_tool_calls(gateway, upstream, fake, name):
    deltas, calls = TOOLS[name]
    events = [fake.event(fake.delta(tool_calls=part)) for part in deltas]
    sent = b"".join([*events, fake.event(fake.delta(finish="tool_calls")), fake.DONE])
    upstream.script("m-alpha", fake.stream(sent))
    with gateway.streaming() as answer:
        assert answer.read() == sent
    stored = gateway.record(answer)["calls"][0]
    assert [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in stored["tool_calls"]] == calls
    assert stored["finish_reason"] == "tool_calls"


def test_several_choices_do_not_mix(gateway, upstream, fake):
    tool = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}}
    other = {"index": 0, "id": "z", "function": {"name": "g", "arguments": "["}}
    events = [
        fake.delta(1, content="B"),
        fake.delta(0, content="A", tool_calls=[tool]),
        fake.delta(1, tool_calls=[other]),
        fake.delta(0, content="a", tool_calls=[{"index": 0, "function": {"arguments": "}"}}]),
        fake.delta(1, content="b", tool_calls=[{"index": 0, "function": {"arguments": "]"}}]),
        fake.delta(0, finish="tool_calls"),
        fake.delta(1, finish="stop"),
    ]
    upstream.script("m-alpha", fake.stream([fake.event(e) for e in events] + [fake.DONE]))
    with gateway.streaming(n=2) as answer:
        answer.read()
    call = gateway.record(answer)["calls"][0]
    assert call["completion"] == "Aa"
    assert [(c["id"], c["function"]["arguments"]) for c in call["tool_calls"]] == [("a", "{}")]


NASTY = b'{"id":"chatcmpl-1","choices":[{"index":0,"%s":{"content":"%s"},"logprobs":%s,"finish_reason":%s}],"x":1e999}'


@pytest.mark.parametrize("logprobs", [b"-Infinity", b"NaN", b"null"])
@pytest.mark.parametrize("streamed", [True, False])
def test_numbers_and_surrogates_that_are_no_json(gateway, upstream, running, fake, logprobs, streamed):
    if streamed:
        first = NASTY % (b"delta", b"", logprobs, b"null")
        second = NASTY % (b"delta", b"a\\ud83d", logprobs, b'"stop"')
        third = fake.event(fake.delta(content="1.50"))
        data = b"data: " + first + b"\n\n" + third + b"data: " + second + b"\n\n"
        upstream.script("m-alpha", fake.stream(data))
        with gateway.streaming() as answer:
            chunks = [json.loads(d, parse_constant=pytest.fail) for d in running.events(answer)[:-1]]
            assert third in answer.read()
        said = chunks[-1]["choices"][0]["delta"]["content"]
    else:
        upstream.script("m-alpha", fake.reply(NASTY % (b"message", b"a\\ud83d", logprobs, b'"stop"')))
        answer = gateway.chat("x")
        chunks = [json.loads(answer.content, parse_constant=pytest.fail)]
        said = chunks[0]["choices"][0]["message"]["content"]
    assert answer.status_code == 200
    assert said == "a\ufffd"
    assert chunks[-1]["choices"][0]["logprobs"] is None
    assert gateway.record(answer)["calls"][0]["completion"].endswith("a\ufffd")


def test_role_and_empty_chunks_wait_for_content(gateway, upstream, fake):
    upstream.script("m-alpha", fake.stream(fake.ROLE * 3 + fake.event(fake.usage_chunk()), ending="reset"))
    upstream.script("m-beta", fake.stream(fake.words("b")))
    with gateway.streaming() as answer:
        body = answer.read()
    assert answer.headers["x-pointsman-worker"] == "beta"
    assert body.count(b'"role"') == 1
    record = gateway.record(answer)
    assert [call["status"] for call in record["calls"]] == ["error", "ok"]
    assert (record["decision"]["chosen"], record["outcome"]["worker"]) == ("alpha", "beta")
