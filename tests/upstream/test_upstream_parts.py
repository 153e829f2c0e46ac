"""The parts of the client to workers on their own: splitting events, Retry-After, faults, bodies, usage read."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import msgspec
import pytest

from pointsman.config.model import QuirksConfig
from pointsman.errors import UpstreamError
from pointsman.pool import Endpoint, Worker
from pointsman.upstream.body import worker_body
from pointsman.upstream.breaker import Breaker
from pointsman.upstream.faults import from_error_object, from_status, without_secrets
from pointsman.upstream.retry_after import parse_retry_after
from pointsman.upstream.seen import Seen
from pointsman.upstream.sse import MAX_EVENT_BYTES, EventSplitter, event_data

NOW = datetime(2026, 10, 21, 7, 28, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        ("0.5", 0.5),
        ("120", 120),
        (" 7 ", 7),
        ("99999999", 86_400),
        ("inf", 86_400),
        ("-1", None),
        ("abc", None),
        ("nan", None),
        ("", None),
        (None, None),
        ("9" * 200, None),
        ("Wed, 21 Oct 2026 07:28:30 GMT", 30),
        ("Wed, 21 Oct 2026 07:28:30 -0000", 30),
        ("Wed, 21 Oct 2026 09:28:30 +0200", 30),
        ("Wed, 21 Oct 2026 07:27:00 GMT", 0),
        ("Wed, 21 Oct 2099 07:28:00 GMT", 86_400),
        ("Wed, 99 Oct 2026 07:28:30 GMT", None),
        ("Wed, 21 Oct 99999 07:28:30 GMT", None),
    ],
)
def test_retry_after(value, seconds):
    assert parse_retry_after(value, NOW) == seconds


def test_any_cut_of_any_line_ends_gives_the_same_events():
    rng = random.Random(5)
    for _ in range(400):
        ends = [rng.choice([b"\n", b"\r\n", b"\r"]) for _ in range(4)]
        payloads = [f"data: {{{n}}} é🌍\u2028".encode() for n in range(4)]
        sent = b"".join(payload + end + end for payload, end in zip(payloads, ends, strict=True))
        splitter, got, at = EventSplitter(), [], 0
        while at < len(sent):
            step = rng.randint(1, 9)
            got += splitter.feed(sent[at : at + step])
            at += step
        got += splitter.finish()
        assert [event_data(event) for event in got] == [payload[6:] for payload in payloads], (ends, got)


def test_a_large_event_in_small_pieces_is_found_once():
    splitter = EventSplitter()
    event = b"data: " + b"x" * 400_000 + b"\n\n"
    got = [found for at in range(0, len(event), 100) for found in splitter.feed(event[at : at + 100])]
    assert got == [event]


def test_an_endless_event_is_refused():
    splitter = EventSplitter()
    with pytest.raises(UpstreamError, match="an event is larger than"):
        for _ in range(MAX_EVENT_BYTES // 1_000_000 + 2):
            splitter.feed(b"x" * 1_000_000)


@pytest.mark.parametrize(
    ("event", "data"),
    [
        (b"data: x\n\n", b"x"),
        (b"data:x\r\n\r\n", b"x"),
        (b"data:  x\n\n", b" x"),
        (b"event: y\ndata: a\ndata: b\nid: 1\n\n", b"a\nb"),
        (b": comment\n\n", None),
        (b"retry: 5\n\n", None),
        (b": c\ndata: x\n\n", b"x"),
        (b"data\n\n", None),
        (b"data:\n\n", b""),
    ],
)
def test_the_data_of_an_event(event, data):
    assert event_data(event) == data


@pytest.mark.parametrize(
    ("status", "body", "fault"),
    [
        (429, "", "rate_limited"),
        (401, "", "auth"),
        (403, "", "auth"),
        (400, "context_length_exceeded", "context_exceeded"),
        (413, "reduce the length of the messages", "context_exceeded"),
        (400, "bad", "bad_request"),
        (422, "bad", "bad_request"),
        (404, "", "server"),
        (301, "", "server"),
        (500, "context window", "server"),
        (529, "", "server"),
        (408, "", "timeout"),
    ],
)
def test_the_fault_of_a_status(status, body, fault):
    assert from_status(status, body, None).fault == fault


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        ("it broke", "server"),
        ({"message": "x"}, "server"),
        ({"message": "x", "code": 429}, "rate_limited"),
        ({"message": "x", "code": "429"}, "rate_limited"),
        ({"message": "x", "code": 400}, "bad_request"),
        ({"message": "x", "type": "rate_limit_error"}, "rate_limited"),
        ({"message": "x", "type": "overloaded_error"}, "rate_limited"),
        ({"message": "prompt is too long"}, "context_exceeded"),
        ({"message": "lone \ud83d surrogate", "n": float("nan")}, "server"),
        ([1, 2], "server"),
        (True, "server"),
    ],
)
def test_the_fault_of_an_error_object(error, fault):
    found = from_error_object(error)
    assert found.fault == fault
    assert found.body is not None and found.body.encode()


def test_secrets_are_blacked_out_by_shape_and_by_value():
    text = "key sk-abcdef123456, Bearer xyz.abc, odd-one, AIzaSyA1234567890abcdefghijk"
    assert without_secrets(text, ["odd-one"]) == "key [key removed], [key removed] [key removed], [key removed]"


def worker(**quirks):
    return Worker("w", "card", "m-w", (Endpoint("http://x"),), quirks=QuirksConfig(**quirks))


def body_of(raw: bytes, stream=False, **quirks) -> bytes:
    return worker_body(msgspec.json.decode(raw, type=dict[str, msgspec.Raw]), worker(**quirks), stream=stream)


def test_a_body_keeps_all_bytes_but_the_models():
    raw = b'{"messages":[{"role":"user" ,  "content":"\\u00e9"}],"model":"pointsman","x":[1.10, 1e2,{"b":1,"a":2}]}'
    assert body_of(raw) == raw.replace(b'"pointsman"', b'"m-w"')


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (b"", b',"stream_options":{"include_usage":true}'),
        (b',"stream_options":null', b',"stream_options":{"include_usage":true}'),
        (b',"stream_options":{}', b',"stream_options":{"include_usage":true}'),
        (b',"stream_options":{"include_usage":false,"x":1}', b',"stream_options":{"include_usage":true,"x":1}'),
    ],
)
def test_usage_is_always_asked_of_a_stream(given, sent):
    raw = b'{"messages":[],"model":"pointsman","stream":true'
    assert body_of(raw + given + b"}", stream=True) == b'{"messages":[],"model":"m-w","stream":true' + sent + b"}"


def test_an_escaped_role_is_known_too():
    raw = b'{"messages":[{"role":"d\\u0065veloper","content":1.50}],"model":"m"}'
    assert body_of(raw, system_role="system") == b'{"messages":[{"role":"system","content":1.50}],"model":"m-w"}'


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"5",
        b'"text"',
        b"{nonsense",
        b"\xff\xfe",
        b'{"choices":5}',
        b'{"choices":[5]}',
        b'{"choices":[null]}',
        b"[" * 100_000,
        b'{"choices":[{"delta":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}]}",
    ],
)
def test_what_is_no_completion_is_malformed(data):
    with pytest.raises(UpstreamError) as refused:
        Seen().event(data)
    assert refused.value.fault == "malformed"


@pytest.mark.parametrize(
    "choice",
    [
        {"index": None, "delta": None},
        {"index": -1, "delta": {"content": 5}},
        {"index": 10**30, "delta": {"content": ["x"], "tool_calls": 7}},
        {"index": "0", "delta": {"tool_calls": [None, 1, {"function": 5}, {"id": 3, "function": {"name": 1}}]}},
        {"delta": {"role": "assistant", "content": None, "reasoning_content": None, "function_call": None}},
        {"message": 5, "finish_reason": 7, "logprobs": {"content": [{"logprob": 1}]}},
    ],
)
def test_odd_choices_are_read_without_a_fault(choice):
    seen = Seen()
    seen.event(msgspec.json.encode({"choices": [choice], "usage": 5, "id": 7, "model": []}))
    assert seen.completion is None and seen.usage is None and seen.completion_id is None
    assert seen.reasoning is None and seen.finish_reason is None


def test_a_worker_that_cools_down_is_not_down_and_one_that_fails_is() -> None:
    now = [0.0]
    breaker = Breaker(2, 5.0, lambda: now[0])
    breaker.cool_down("busy", 10.0)
    assert (breaker.healthy("busy"), breaker.down("busy")) == (False, False)
    for _ in range(2):
        breaker.failed("dead")
    assert (breaker.healthy("dead"), breaker.down("dead")) == (False, True)
    now[0] = 6.0
    assert (breaker.healthy("dead"), breaker.down("dead")) == (True, False), "half open: a probe may be sent"
