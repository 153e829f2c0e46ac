"""An Anthropic client's request as a chat request: every block and field, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.gateway.request import parse_chat
from harness.gateway.surfaces.anthropic import ChatBody, count_tokens, count_tokens_reply, to_chat
from pointsman.errors import RequestError
from pointsman.upstream.anthropic_state import RESULT_BELOW

MINIMAL: dict[str, Any] = {"model": "pointsman", "max_tokens": 16, "messages": [{"role": "user", "content": "hi"}]}
PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


def translate(headers: Any = (), **fields: Any) -> tuple[dict[str, Any], ChatBody]:
    made = to_chat(json.dumps({**MINIMAL, **fields}).encode(), headers)
    parse_chat(made.body, [])  # the core takes it
    return json.loads(made.body), made


def user(*blocks: Any) -> list[dict[str, Any]]:
    return translate(messages=[{"role": "user", "content": list(blocks)}])[0]["messages"]


def test_the_least_request() -> None:
    chat, made = translate()
    assert chat == {
        "model": "pointsman",
        "max_tokens": 16,
        "messages": [{"role": "user", "content": "hi"}],
        "anthropic": {},
    }
    assert not made.context.stream and not made.context.thinking and made.context.prompt_tokens >= 1


def test_system_as_text_and_as_blocks() -> None:
    assert translate(system="Be brief.")[0]["messages"][0] == {"role": "system", "content": "Be brief."}
    mark = {"type": "ephemeral"}
    blocks = [{"type": "text", "text": "a", "cache_control": mark}, {"type": "text", "text": "b"}]
    assert translate(system=blocks)[0]["messages"][0] == {"role": "system", "content": blocks}
    assert translate(system="")[0]["messages"][0]["role"] == "user"


def test_sampling_stop_and_stream() -> None:
    chat, made = translate(temperature=0.5, top_p=0.9, top_k=40, stop_sequences=["END", "\n\n"], stream=True)
    assert (chat["temperature"], chat["top_p"], chat["stop"]) == (0.5, 0.9, ["END", "\n\n"])
    assert chat["stream"] is True and chat["stream_options"] == {"include_usage": True}
    assert chat["anthropic"] == {"top_k": 40}
    assert made.context.stream and made.context.stop_sequences == ("END", "\n\n")


def test_optional_fields_as_null_are_absent() -> None:
    chat, _ = translate(system=None, tools=None, tool_choice=None, stream=None, stop_sequences=None, thinking=None)
    assert set(chat) == {"model", "max_tokens", "messages", "anthropic"}


def test_tools_and_their_extras() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    mark = {"cache_control": {"type": "ephemeral"}}
    tools = [{"name": "f", "description": "d", "input_schema": schema, "strict": True, **mark}]
    chat, _ = translate(tools=tools)
    function = {"name": "f", "parameters": schema, "description": "d", "strict": True}
    assert chat["tools"] == [{"type": "function", "function": function, "anthropic": mark}]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"type": "auto"}, "auto"),
        ({"type": "any"}, "required"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "f"}, {"type": "function", "function": {"name": "f"}}),
    ],
)
def test_tool_choice(choice: dict[str, Any], expected: Any) -> None:
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    chat, _ = translate(tools=tools, tool_choice=choice)
    assert chat["tool_choice"] == expected and "parallel_tool_calls" not in chat
    chat, _ = translate(tools=tools, tool_choice={**choice, "disable_parallel_tool_use": True})
    assert chat["parallel_tool_calls"] is False


def test_images_and_documents() -> None:
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
    made = user(
        PNG,
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
        {"type": "document", "source": pdf, "title": "a.pdf"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "body"}, "title": "T"},
    )
    assert made == [
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
                {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
                {
                    "type": "file",
                    "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
                },
                {"type": "text", "text": "T\n\nbody"},
            ],
        }
    ]


def test_tool_results_come_before_the_text_beside_them() -> None:
    made = user(
        {"type": "text", "text": "and now?"},
        {"type": "tool_result", "tool_use_id": "a", "content": "one"},
        {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "x"}, PNG], "is_error": True},
        {"type": "tool_result", "tool_use_id": "c"},
        {"type": "tool_result", "tool_use_id": "d", "content": [PNG]},
    )
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    assert made == [
        {"role": "tool", "tool_call_id": "a", "content": "one"},
        {"role": "tool", "tool_call_id": "b", "content": "x", "is_error": True},
        {"role": "tool", "tool_call_id": "c", "content": ""},
        {"role": "tool", "tool_call_id": "d", "content": RESULT_BELOW},
        {
            "role": "user",
            "content": [
                {**image, "tool_call_id": "b"},
                {**image, "tool_call_id": "d"},
                {"type": "text", "text": "and now?"},
            ],
        },
    ]


def test_results_alone_leave_no_user_message() -> None:
    assert [m["role"] for m in user({"type": "tool_result", "tool_use_id": "a", "content": "1"})] == ["tool"]


def test_an_assistant_turn() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s1"},
        {"type": "redacted_thinking", "data": "zz"},
        {"type": "text", "text": "I call."},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"n": 12345678901234567890, "x": 1.0}},
    ]
    chat, _ = translate(messages=[*MINIMAL["messages"], {"role": "assistant", "content": blocks}])
    arguments = '{"n":12345678901234567890,"x":1.0}'
    assert chat["messages"][1] == {
        "role": "assistant",
        "content": "I call.",
        "tool_calls": [{"id": "toolu_1", "type": "function", "function": {"name": "f", "arguments": arguments}}],
        "thinking_blocks": blocks[:2],
    }


def test_an_unusual_order_of_blocks_is_kept_beside_the_message() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    blocks = [{"type": "text", "text": "ab"}, thought, {"type": "text", "text": "c"}]
    chat, _ = translate(messages=[*MINIMAL["messages"], {"role": "assistant", "content": blocks}])
    assert chat["messages"][1]["content"] == "abc"
    assert chat["messages"][1]["block_layout"] == [2, "thinking", 1]


def test_a_call_without_text_has_null_content_and_an_empty_turn_is_left_out() -> None:
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    turns = [{"role": "assistant", "content": [call]}, {"role": "assistant", "content": []}]
    chat, _ = translate(messages=[*MINIMAL["messages"], *turns])
    assert len(chat["messages"]) == 2 and chat["messages"][1]["content"] is None


def test_native_fields_hints_and_betas_ride_along() -> None:
    chat, made = translate(
        headers=[(b"anthropic-beta", b"interleaved-thinking-2025-05-14, oauth-2025-04-20,bad name"), (b"x", b"y")],
        thinking={"type": "enabled", "budget_tokens": 2048},
        metadata={"user_id": "u1", "pointsman": {"quality": 0.5}},
        service_tier="auto",
    )
    assert chat["anthropic"] == {
        "thinking": {"type": "enabled", "budget_tokens": 2048},
        "metadata": {"user_id": "u1"},
        "service_tier": "auto",
        "betas": ["interleaved-thinking-2025-05-14"],
    }
    assert chat["metadata"] == {"pointsman": {"quality": 0.5}}
    assert parse_chat(made.body, []).hints.quality == 0.5
    assert made.context.thinking


def test_a_schema_for_the_output_is_chats_response_format() -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    chat, made = translate(output_config={"format": {"type": "json_schema", "schema": schema}, "effort": "low"})
    assert chat["response_format"]["json_schema"] == {"name": "output", "schema": schema, "strict": True}
    assert chat["anthropic"] == {"output_config": {"effort": "low"}}
    assert parse_chat(made.body, []).json_schema


@pytest.mark.parametrize("thinking", [None, {"type": "disabled"}])
def test_thinking_is_not_asked_for(thinking: Any) -> None:
    assert not translate(thinking=thinking)[1].context.thinking


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"model": 3}, "model"),
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": "16"}, "max_tokens"),
        ({"messages": "hi"}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": [3]}, "messages[0]"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "audio"}]}]}, "messages[0].content[0].type"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": 1}]}]}, "messages[0].content[0].text"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "file"}}]}]},
            "messages[0].content[0].source.type",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]},
            "messages[0].content[0].tool_use_id",
        ),
        (
            {
                "messages": [
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": []}]}
                ]
            },
            "messages[0].content[0].input",
        ),
        (
            {"messages": [{"role": "assistant", "content": [{"type": "server_tool_use"}]}]},
            "messages[0].content[0].type",
        ),
        ({"system": 3}, "system"),
        ({"system": [{"type": "image"}]}, "system[0].type"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0].type"),
        ({"tools": [{"name": "f"}]}, "tools[0].input_schema"),
        ({"tools": [{"name": "f", "input_schema": {}}], "tool_choice": {"type": "maybe"}}, "tool_choice.type"),
        ({"tools": [{"name": "f", "input_schema": {}}], "tool_choice": {"type": "tool"}}, "tool_choice.name"),
        ({"temperature": 1.5}, "temperature"),
        ({"top_p": "x"}, "top_p"),
        ({"stop_sequences": "END"}, "stop_sequences"),
        ({"stop_sequences": [1]}, "stop_sequences[0]"),
        ({"stream": "yes"}, "stream"),
        ({"thinking": True}, "thinking"),
        ({"mcp_servers": [{"type": "url", "url": "https://example.com"}]}, "mcp_servers"),
    ],
)
def test_what_is_wrong_is_named(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        translate(**fields)
    assert caught.value.param == param
    assert caught.value.status == 400
    assert caught.value.message.startswith(f"{param}: ")


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff{}", b'{"a":NaN}', b"[" * 5000, b'{"a":"\\ud800"}'])
def test_hostile_bodies_are_refused(body: bytes) -> None:
    for read in (to_chat, count_tokens):
        with pytest.raises(RequestError) as caught:
            read(body)
        assert caught.value.status == 400


def test_an_address_in_an_unknown_field_reaches_the_guard() -> None:
    with pytest.raises(RequestError, match=r"^base_url: a request may not set an upstream"):
        translate(base_url="http://169.254.169.254")


def test_the_count_is_a_quarter_of_the_characters_and_a_flat_sum_per_image() -> None:
    def count(content: Any, **more: Any) -> int:
        return count_tokens(
            json.dumps({"model": "m", "messages": [{"role": "user", "content": content}], **more}).encode()
        )

    base = count("")
    assert count("x" * 4000) == base + 1000
    big = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 400_000}}
    assert 1000 <= count([big]) - base <= 1010
    assert count("", tools=[{"name": "f", "description": "y" * 400, "input_schema": {}}]) >= base + 100
    assert count("", system="é" * 4000) == base + 1000
    reply = json.loads(count_tokens_reply(json.dumps(MINIMAL).encode()))
    assert reply == {"input_tokens": count_tokens(json.dumps(MINIMAL).encode())}
