"""Request shapes: what reaches a worker, byte for byte, and which worker a shape may reach."""

from __future__ import annotations

import json

import pytest

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 40}}


@pytest.mark.parametrize(
    ("content", "ask"),
    [
        ("plain", "plain"),
        ([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}, {"type": "text", "text": "three"}], None),
        ([{"type": "mystery", "thing": 1}, {"type": "text", "text": "seen"}], "seen"),
        (None, ""),
        ("", ""),
        ("line\u2028separator \u2029 and \x7f", "line\u2028separator \u2029 and \x7f"),
    ],
)
def test_content_of_every_shape(gateway, upstream, content, ask):
    answer = gateway.chat(content)
    assert answer.status_code == 200, answer.text
    assert upstream.calls[0].json["messages"][0]["content"] == content
    assert gateway.record(answer)["request"]["text"] == ("one\ntwo\nthree" if ask is None else ask)


def test_unknown_fields_and_numbers_reach_the_worker_byte_for_byte(gateway, upstream):
    big, odd = b"9" * 200, b"1.50000000000000000000000000001e+02"
    body = (
        b'{"model":"pointsman","messages":[{"role":"user","content":"x","zz":' + odd + b"}],"
        b'"seed":' + big + b',"new_thing":{"b":' + odd + b',"a":[1.0,1e5,-0]},"user":"\\u0041"}'
    )
    answer = gateway.post(body)
    assert answer.status_code == 200, answer.text
    sent = upstream.calls[0].body
    assert sent == body.replace(b'"pointsman"', b'"m-alpha"', 1)


def test_null_for_every_optional_field(gateway, upstream):
    names = [
        "tools",
        "tool_choice",
        "functions",
        "response_format",
        "stream",
        "stream_options",
        "metadata",
        "stop",
        "seed",
        "n",
        "logprobs",
        "top_logprobs",
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "top_p",
        "user",
        "store",
        "parallel_tool_calls",
        "logit_bias",
    ]
    answer = gateway.chat("x", **dict.fromkeys(names))
    assert answer.status_code == 200, answer.text
    sent = upstream.calls[0].json
    assert {name: sent[name] for name in names} == dict.fromkeys(names)


def test_assistant_turn_with_null_content_and_tool_calls_is_replayed(gateway, upstream):
    call = {"id": "call_n", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": "do it"},
        {"role": "assistant", "content": None, "tool_calls": [call], "refusal": None},
        {"role": "tool", "tool_call_id": "call_n", "content": "done"},
    ]
    answer = gateway.chat(messages=messages)
    assert answer.status_code == 200, answer.text
    assert upstream.calls[0].json["messages"] == messages
    assert gateway.record(answer)["request"]["text"] == "do it"


@pytest.mark.parametrize("stop", ["", "x", [], ["\n"] * 5, None])
def test_stop_of_every_shape_is_forwarded(gateway, upstream, stop):
    assert gateway.chat("x", stop=stop).status_code == 200
    assert upstream.calls[0].json["stop"] == stop


def test_harness_noise_is_context_and_not_the_ask(gateway, upstream):
    messages = [
        {"role": "system", "content": "beta rules"},
        {"role": "user", "content": "<system-reminder>beta</system-reminder>sort this list"},
    ]
    record = gateway.record(gateway.chat(messages=messages))
    assert record["request"]["text"] == "sort this list"
    assert record["decision"]["chosen"] == "alpha"


@pytest.mark.parametrize(
    ("fields", "reasons"),
    [
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, {"gamma": "no_tools"}),
        ({"tools": []}, {"gamma": None}),
        ({"messages": [{"role": "user", "content": [IMAGE]}]}, {"beta": "no_images", "gamma": "no_images"}),
        (
            {"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AA"}}]}]},
            {"beta": "no_audio", "gamma": "no_audio"},
        ),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, {"beta": None, "gamma": "no_json_schema"}),
        ({"response_format": {"type": "json_object"}}, {"gamma": None}),
        ({"logprobs": True}, {"beta": "no_logprobs", "alpha": None}),
        ({"max_tokens": 2999}, {"gamma": "context_window", "beta": None}),
    ],
)
def test_a_capability_that_a_worker_lacks_is_masked(gateway, upstream, fields, reasons):
    answer = gateway.chat(**{"messages": [{"role": "user", "content": "beta"}], **fields})
    assert answer.status_code == 200, answer.text
    eligible = gateway.record(answer)["decision"]["eligible"]
    assert {name: eligible[name] for name in reasons} == reasons


def test_an_image_counts_as_an_image_and_not_as_its_bytes(gateway, upstream):
    large = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 2_000_000}}
    answer = gateway.chat([{"type": "text", "text": "what is this?"}, large])
    assert answer.status_code == 200, answer.text
    record = gateway.record(answer)
    assert record["decision"]["eligible"]["alpha"] is None
    assert record["request"]["text"] == "what is this?"


def test_a_prompt_too_long_for_every_worker_is_told_by_openais_code(gateway, upstream):
    answer = gateway.chat("word " * 250_000)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "context_length_exceeded"
    assert upstream.calls == []
    assert gateway.record(answer)["outcome"]["status"] == "rejected"


QUIRKS = """
[[workers]]
name = "old"
description = "Knows max_tokens and system only."
model = "m-old"
base_url = "{url}"
quirks = {{ max_tokens_field = "max_tokens", system_role = "system", stream_usage = false, auth_header = "X-Key" }}
api_key_env = "ALPHA_KEY"
[[workers]]
name = "new"
description = "Knows max_completion_tokens and developer."
model = "m-new"
base_url = "{url}"
quirks = {{ max_tokens_field = "max_completion_tokens", system_role = "developer" }}
"""


@pytest.fixture(scope="module")
def quirky(make_gateway):
    return make_gateway("[router]\nchain = ['default']\ndefault = 'old'\n", QUIRKS)


@pytest.mark.parametrize(
    ("given", "worker", "sent"),
    [
        ({"max_tokens": 5}, "old", {"max_tokens": 5}),
        ({"max_completion_tokens": 6}, "old", {"max_tokens": 6}),
        ({"max_tokens": 5, "max_completion_tokens": 6}, "old", {"max_tokens": 5}),
        ({"max_tokens": None, "max_completion_tokens": 6}, "old", {"max_tokens": 6}),
        ({"max_tokens": None, "max_completion_tokens": None}, "old", {}),
        ({"max_tokens": 5}, "new", {"max_completion_tokens": 5}),
        ({"max_completion_tokens": 6}, "new", {"max_completion_tokens": 6}),
    ],
)
def test_limits_go_by_the_name_a_worker_knows(quirky, upstream, given, worker, sent):
    answer = quirky.chat("x", model=worker, **given)
    assert answer.status_code == 200, answer.text
    got = upstream.calls[0].json
    assert {name: got[name] for name in ("max_tokens", "max_completion_tokens") if name in got} == sent


@pytest.mark.parametrize(("worker", "role"), [("old", "system"), ("new", "developer")])
@pytest.mark.parametrize("given", ["system", "developer"])
def test_system_role_goes_by_the_name_a_worker_knows(quirky, upstream, worker, role, given):
    raw = (
        b'{"model":"%s","messages":[{"role":"%s","content":"brief","n":1.50},{"role":"user","content":"x","n":1.50}]}'
        % (worker.encode(), given.encode())
    )
    assert quirky.post(raw).status_code == 200
    sent = upstream.calls[0]
    assert [message["role"] for message in sent.json["messages"]] == [role, "user"]
    assert sent.body.count(b"1.50") == 2


def test_a_worker_without_stream_usage_is_not_asked_for_it(quirky, upstream, running, fake):
    upstream.script("m-old", fake.stream(fake.event(fake.delta(content="hey", finish="stop")) + fake.DONE))
    with quirky.streaming(model="old", stream_options={"include_usage": True}) as answer:
        chunks = running.events(answer)
    assert "stream_options" not in upstream.calls[0].json
    usage = json.loads(chunks[-2])
    assert usage["choices"] == []
    assert usage["usage"]["estimated"] is True and usage["usage"]["completion_tokens"] == 1
    call = quirky.record(answer)["calls"][0]
    assert call["usage_estimated"] is True and call["output_tokens"] == 1
    assert upstream.calls[0].headers["x-key"] == "canary-worker-key-7Q"
    assert "authorization" not in upstream.calls[0].headers
