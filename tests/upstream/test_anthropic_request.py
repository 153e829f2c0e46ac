"""A chat request as a request of the Messages API."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from pointsman.errors import UpstreamError
from pointsman.upstream.anthropic import JSON_ONLY, headers, request_of
from pointsman.upstream.anthropic_messages import BEGINNING, tool_use_id
from pointsman.upstream.anthropic_state import RESULT_BELOW, seal

USER = {"role": "user", "content": "hi"}
TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}


def request(*messages: Any, origin: str = "", **fields: Any) -> dict[str, Any]:
    chat = {"model": "pointsman", "messages": list(messages) or [USER], **fields}
    made: dict[str, Any] = json.loads(request_of(chat, "claude-x", 4096, origin=origin))
    return made


def test_the_least_request_from_raw_and_from_decoded_fields() -> None:
    expected = {
        "model": "claude-x",
        "max_tokens": 4096,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    }
    assert request() == expected
    raw = msgspec.json.decode(b'{"model":"p","messages":[{"role":"user","content":"hi"}]}', type=dict[str, msgspec.Raw])
    assert json.loads(request_of(raw, "claude-x", 4096)) == expected


def test_system_and_developer_are_the_system_text() -> None:
    made = request({"role": "system", "content": "a"}, USER, {"role": "developer", "content": "b"}, USER)
    assert made["system"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert len(made["messages"]) == 1 and len(made["messages"][0]["content"]) == 2
    assert request({"role": "system", "content": "a"}, USER)["system"] == "a"


def test_a_tool_loop() -> None:
    calls = [
        {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1.50}'}},
        {"id": "call_2", "type": "function", "function": {"name": "g", "arguments": ""}},
    ]
    made = request(
        USER,
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "call_1", "content": "one"},
        {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "text", "text": "two"}]},
        {"role": "user", "content": "go on"},
        tools=[TOOL],
    )
    assert made["messages"][1]["content"] == [
        {"type": "tool_use", "id": "call_1", "name": "f", "input": {"x": 1.5}},
        {"type": "tool_use", "id": "call_2", "name": "g", "input": {}},
    ]
    assert made["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "one"}]},
        {"type": "tool_result", "tool_use_id": "call_2", "content": [{"type": "text", "text": "two"}]},
        {"type": "text", "text": "go on"},
    ]
    assert made["tools"] == [{"name": "f", "description": "d", "input_schema": {"type": "object"}}]


def test_images_of_a_result_go_back_into_it() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    made = request(
        USER,
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": RESULT_BELOW},
        {"role": "user", "content": [{**image, "tool_call_id": "c"}, {"type": "text", "text": "see"}]},
    )
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    assert made["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "image", "source": source}]},
        {"type": "text", "text": "see"},
    ]


def test_parts() -> None:
    content = [
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"}},
        {"type": "text", "text": " "},
        {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}},
    ]
    assert request({"role": "user", "content": content})["messages"][0]["content"] == [
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"},
            "title": "a.pdf",
        },
        {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}},
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"max_tokens": 5}, {"max_tokens": 5}),
        ({"max_completion_tokens": 6, "max_tokens": None}, {"max_tokens": 6}),
        ({"temperature": 1.7}, {"temperature": 1}),
        ({"temperature": 0, "top_p": 0.5}, {"temperature": 0, "top_p": 0.5}),
        ({"stop": "END"}, {"stop_sequences": ["END"]}),
        ({"stop": ["a", "\n", "", None]}, {"stop_sequences": ["a"]}),
        ({"stop": "\n"}, {}),
        ({"stream": True, "stream_options": {"include_usage": True}}, {"stream": True}),
        ({"user": "u"}, {"metadata": {"user_id": "u"}}),
        ({"seed": 1, "logit_bias": {}, "presence_penalty": 1, "n": 1, "store": False}, {}),
        ({"reasoning_effort": "minimal"}, {"output_config": {"effort": "low"}}),
        ({"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}),
        ({"response_format": {"type": "text"}}, {}),
        ({"response_format": {"type": "json_object"}}, {"system": JSON_ONLY}),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "array"}}}},
            {"output_config": {"format": {"type": "json_schema", "schema": {"type": "array"}}}},
        ),
        ({"tool_choice": "auto"}, {}),  # there are no tools
    ],
)
def test_fields(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert request(**given) == {**request(), **expected}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"tool_choice": "auto"}, {"type": "auto"}),
        ({"tool_choice": "required"}, {"type": "any"}),
        ({"tool_choice": "none", "parallel_tool_calls": False}, {"type": "none"}),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, {"type": "tool", "name": "f"}),
        ({"parallel_tool_calls": False}, {"type": "auto", "disable_parallel_tool_use": True}),
        (
            {"parallel_tool_calls": False, "tool_choice": "required"},
            {"type": "any", "disable_parallel_tool_use": True},
        ),
    ],
)
def test_tool_choice(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert request(tools=[TOOL], **given)["tool_choice"] == expected


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"n": 2}, "n: "),
        ({"functions": [{"name": "f"}]}, "functions: "),
        ({"tools": [{"type": "custom", "custom": {}}]}, "tools[0]: "),
        ({"messages": [{"role": "function", "name": "f", "content": "x"}]}, "messages[0].role: "),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "messages[0].content[0]: "),
        ({"messages": [{"role": "user", "content": " "}]}, "messages: "),
    ],
)
def test_what_it_cannot_do_is_the_requests_fault(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(UpstreamError) as caught:
        request_of({"messages": [USER], **fields}, "m", 1)
    assert caught.value.fault == "bad_request" and caught.value.message.startswith(named)


def test_a_beginning_and_an_end_that_the_api_takes() -> None:
    made = request(
        {"role": "assistant", "content": "Hello"}, USER, {"role": "assistant", "content": "The answer is: \n"}
    )
    assert made["messages"][0] == {"role": "user", "content": [{"type": "text", "text": BEGINNING}]}
    assert [m["role"] for m in made["messages"]] == ["user", "assistant", "user", "assistant"]
    assert made["messages"][-1]["content"][0]["text"] == "The answer is:"


def test_foreign_ids_fit_and_stay_apart() -> None:
    assert tool_use_id("call_Ab-9") == "call_Ab-9"
    odd = [tool_use_id(f"functions.f:{n}") for n in range(3)] + [tool_use_id("functions_f:0"), tool_use_id("x" * 200)]
    assert len(set(odd)) == 5 and all(len(i) <= 128 and i.replace("_", "").isalnum() for i in odd)


def test_thinking_goes_back_to_its_maker_alone() -> None:
    block = {"type": "thinking", "thinking": "hm", "signature": "sig"}
    hidden = {"type": "redacted_thinking", "data": "zz"}
    unsigned = {"type": "thinking", "thinking": "other", "signature": ""}
    sealed = [seal(block, "opus"), seal(hidden, "opus"), unsigned]
    turn = {"role": "assistant", "content": "x", "thinking_blocks": sealed}
    text = {"type": "text", "text": "x"}

    def content(origin: str, turn: dict[str, Any] = turn) -> Any:
        return request(USER, turn, USER, origin=origin)["messages"][1]["content"]

    assert content("opus") == [block, hidden, text]
    assert content("haiku") == [text]
    assert content("opus", {**turn, "thinking_blocks": [block, hidden]}) == [text]  # nobody's seal
    assert content("", {**turn, "thinking_blocks": [block, unsigned]}) == [block, text]


def test_budgeted_thinking_is_left_out_of_a_loop_that_began_without() -> None:
    block = seal({"type": "thinking", "thinking": "hm", "signature": "sig"}, "opus")
    calls = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    turn = {"role": "assistant", "content": None, "tool_calls": calls, "thinking_blocks": [block]}
    result = {"role": "tool", "tool_call_id": "c", "content": "1"}
    enabled = {"thinking": {"type": "enabled", "budget_tokens": 2048}}
    assert "thinking" in request(USER, turn, result, origin="opus", anthropic=enabled)
    assert "thinking" not in request(USER, turn, result, origin="haiku", anthropic=enabled)
    assert "thinking" in request(
        USER, turn, result, {"role": "assistant", "content": "done"}, USER, origin="haiku", anthropic=enabled
    )
    adaptive = {"thinking": {"type": "adaptive"}}
    assert "thinking" in request(USER, turn, result, origin="haiku", anthropic=adaptive)


def test_the_clients_own_fields_come_back_but_not_those_that_chat_says() -> None:
    native = {
        "thinking": {"type": "adaptive"},
        "top_k": 3,
        "metadata": {"user_id": "u"},
        "betas": ["b"],
        "preamble": ["x-anthropic-billing-header: 1"],
        "model": "other",
        "stream": True,
        "max_tokens": 10**9,
        "mcp_servers": [],
    }
    made = request({"role": "system", "content": "s"}, USER, anthropic=native)
    assert made == {
        **request(),
        "system": [{"type": "text", "text": "x-anthropic-billing-header: 1"}, {"type": "text", "text": "s"}],
        "thinking": {"type": "adaptive"},
        "top_k": 3,
        "metadata": {"user_id": "u"},
    }


def test_headers() -> None:
    assert headers(["b1", "b2"]) == {
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "b1,b2",
    }
    assert headers() == {"anthropic-version": "2023-06-01"}
