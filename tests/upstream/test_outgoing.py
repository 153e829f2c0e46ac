"""What goes out to a worker, by the API it speaks; and how a reply of embeddings is read."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from pointsman.config.model import QuirksConfig
from pointsman.errors import UpstreamError
from pointsman.pool import Endpoint, Worker
from pointsman.upstream.embeddings import read_embeddings
from pointsman.upstream.outgoing import DEFAULT_MAX_TOKENS, chat_call, embeddings_call
from pointsman.upstream.seen import Seen
from pointsman.upstream.usage import Usage

USER = {"role": "user", "content": "hi"}


def worker(api: str = "openai", **more: Any) -> Worker:
    quirks = QuirksConfig.model_validate({"api": api})
    return Worker("w", "card", "model-of-w", (Endpoint("http://127.0.0.1:1"),), quirks=quirks, **more)


def fields(**given: Any) -> dict[str, msgspec.Raw]:
    return msgspec.json.decode(msgspec.json.encode(given), type=dict[str, msgspec.Raw])


def test_a_plain_chat_goes_out_as_it_came() -> None:
    raw = msgspec.json.decode(b'{"model":"x","messages":[{"role":"user"}],"odd":1.50}', type=dict[str, msgspec.Raw])
    made = chat_call(raw, worker(), stream=False)
    assert made.body == b'{"model":"model-of-w","messages":[{"role":"user"}],"odd":1.50}'
    assert (made.path, made.headers, made.translation) == ("/chat/completions", {}, None)


@pytest.mark.parametrize("has_history", [True, False])
def test_anthropics_own_fields_stay_from_other_workers(has_history: bool) -> None:
    given = fields(model="x", messages=[{**USER, "cache_control": {}}], anthropic={"betas": ["b"], "top_k": 3})
    made = chat_call(given, worker(), stream=False, has_history=has_history)
    assert json.loads(made.body) == {"model": "model-of-w", "messages": [USER]}
    assert made.headers == {}


def test_another_workers_thinking_is_left_out() -> None:
    answer = {"role": "assistant", "content": "y", "thinking_blocks": [{"type": "thinking", "signature": "s"}]}
    made = chat_call(fields(model="x", messages=[USER, answer]), worker(), stream=False, has_history=True)
    assert json.loads(made.body)["messages"] == [USER, {"role": "assistant", "content": "y"}]


@pytest.mark.parametrize(("most", "limit"), [(None, DEFAULT_MAX_TOKENS), (77, 77)])
def test_an_anthropic_worker_gets_its_api_and_a_limit(most: int | None, limit: int) -> None:
    given = fields(model="x", messages=[USER], stream=True, anthropic={"betas": ["b-1"]})
    made = chat_call(given, worker("anthropic", max_output_tokens=most), stream=True)
    body = json.loads(made.body)
    assert made.path == "/messages"
    assert (body["model"], body["max_tokens"], body["stream"]) == ("model-of-w", limit, True)
    assert made.headers == {"anthropic-version": "2023-06-01", "anthropic-beta": "b-1"}


def test_a_reply_is_translated_with_the_makers_seal() -> None:
    made = chat_call(fields(model="x", messages=[USER]), worker("anthropic"), stream=False)
    assert made.translation is not None
    block = {"type": "thinking", "thinking": "t", "signature": "s"}
    reply = json.dumps({"id": "msg_1", "content": [block], "stop_reason": "end_turn"}).encode()
    whole = json.loads(made.translation.whole(reply, 1_760_000_000))
    assert whole["created"] == 1_760_000_000
    assert whole["choices"][0]["message"]["thinking_blocks"][0]["signature"].startswith("pm.")
    feed = made.translation.stream(5)
    assert json.loads(feed(b'{"type":"message_start","message":{"id":"msg_2"}}')[0])["created"] == 5
    assert feed(b'{"type":"message_stop"}') == [b"[DONE]"]


def test_what_the_api_has_no_word_for_is_a_bad_request() -> None:
    with pytest.raises(UpstreamError, match="one choice per request") as refused:
        chat_call(fields(model="x", messages=[USER], n=2), worker("anthropic"), stream=False)
    assert refused.value.fault == "bad_request"


def test_embeddings_go_out_as_they_came() -> None:
    raw = msgspec.json.decode(b'{"input":[1,2.0],"model":"x","odd":1.50}', type=dict[str, msgspec.Raw])
    made = embeddings_call(raw, worker())
    assert (made.path, made.body) == ("/embeddings", b'{"input":[1,2.0],"model":"model-of-w","odd":1.50}')


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 9, "total_tokens": 9}, Usage(9, 0)),
        ({"prompt_tokens": 9, "completion_tokens": 4}, Usage(9, 0)),
        ({"prompt_tokens": -1}, None),
        ({}, None),
        (None, None),
        ("9", None),
    ],
)
def test_the_usage_of_embeddings(usage: Any, expected: Usage | None) -> None:
    seen = Seen()
    read_embeddings(seen, json.dumps({"data": [{}], "usage": usage, "model": "m\0"}).encode())
    assert seen.usage == expected
    assert seen.model == "m\ufffd" and not seen.has_content


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"", "malformed"),
        (b"[]", "malformed"),
        (b'{"data": []}', "malformed"),
        (b'{"data": {}}', "malformed"),
        (b'{"choices": [{}]}', "malformed"),
        (b"\xff", "malformed"),
        (b'{"error": {"message": "x", "type": "rate_limit_error"}}', "rate_limited"),
        (b'{"error": "too many tokens: reduce the length"}', "context_exceeded"),
    ],
)
def test_a_reply_that_is_no_embeddings(body: bytes, fault: str) -> None:
    with pytest.raises(UpstreamError) as failed:
        read_embeddings(Seen(), body)
    assert failed.value.fault == fault
