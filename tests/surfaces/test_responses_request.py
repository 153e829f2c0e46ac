"""Responses requests as chat requests: every field's way, every shape of input."""

from __future__ import annotations

import json
from typing import Any

from harness.gateway.request import parse_chat
from harness.gateway.surfaces.responses import ChatBody, to_chat

FUNCTION = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}


def translated(**fields: Any) -> ChatBody:
    return to_chat(json.dumps({"model": "pointsman", "input": "hi", **fields}).encode())


def chat(**fields: Any) -> dict[str, Any]:
    """The chat request; it must be one that the core reads."""
    body = translated(**fields).body
    parse_chat(body, [])
    decoded: dict[str, Any] = json.loads(body)
    return decoded


def messages(*items: Any) -> list[dict[str, Any]]:
    return chat(input=list(items))["messages"]


def call(call_id: str, arguments: str = "{}", name: str = "look") -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def result(call_id: str, output: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def test_a_bare_text_is_one_user_message() -> None:
    assert chat() == {"model": "pointsman", "messages": [{"role": "user", "content": "hi"}]}


def test_instructions_come_first_as_a_system_message() -> None:
    items = [{"role": "developer", "content": "d"}, {"role": "user", "content": "u"}]
    assert chat(instructions="i", input=items)["messages"] == [
        {"role": "system", "content": "i"},
        {"role": "developer", "content": "d"},
        {"role": "user", "content": "u"},
    ]


def test_parts_become_chat_parts() -> None:
    parts = [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="},
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
    ]
    assert messages({"type": "message", "role": "user", "content": parts}) == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}},
                {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA==", "filename": "a.pdf"}},
                {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
            ],
        }
    ]


def test_a_single_text_part_becomes_a_plain_text() -> None:
    item = {"role": "assistant", "content": [{"type": "output_text", "text": "yes", "annotations": []}]}
    assert messages({"role": "user", "content": [{"type": "input_text", "text": "a"}]}, item) == [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "yes"},
    ]


def test_text_and_calls_of_one_turn_become_one_message_with_its_results_behind() -> None:
    said = {"type": "message", "role": "assistant", "content": "I look."}
    question = {"role": "user", "content": "go"}
    got = messages(question, said, call("a", '{"x":1}'), call("b", ""), result("b", "B"), result("a", "A"))
    assert got == [
        question,
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"x":1}'}},
                {"id": "b", "type": "function", "function": {"name": "look", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "b", "content": "B"},
        {"role": "tool", "tool_call_id": "a", "content": "A"},
    ]


def test_text_after_calls_joins_their_message() -> None:
    said = {"role": "assistant", "content": "I look."}
    got = messages(call("a"), said, result("a", "A"))
    assert [message["role"] for message in got] == ["assistant", "tool"]
    assert got[0]["content"] == "I look."
    both = messages({"role": "assistant", "content": "One."}, call("a"), {**said, "content": "Two."}, result("a", "A"))
    assert both[0]["content"] == [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]


def test_a_result_goes_to_its_call_wherever_it_stood() -> None:
    got = messages(call("a"), call("b"), result("a", "A"), {"role": "user", "content": "hurry"}, result("b", "B"))
    assert [(m["role"], m.get("tool_call_id")) for m in got] == [
        ("assistant", None),
        ("tool", "a"),
        ("tool", "b"),
        ("user", None),
    ]


def test_calls_after_results_start_a_new_message() -> None:
    got = messages(call("a"), result("a", "A"), call("b"), result("b", "B"))
    assert [m["role"] for m in got] == ["assistant", "tool", "assistant", "tool"]


def test_an_image_in_a_result_is_shown_behind_the_results() -> None:
    output = [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": "data:image/png;base64,AA=="}]
    got = messages(call("a"), call("b"), result("a", output), result("b", "B"))
    assert [m["role"] for m in got] == ["assistant", "tool", "tool", "user"]
    assert got[1]["content"] == "see"
    assert got[3]["content"] == [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]


def test_a_result_that_is_an_image_alone_points_to_it() -> None:
    got = messages(call("a"), result("a", [{"type": "input_image", "image_url": "data:image/png;base64,AA=="}]))
    assert got[1]["content"] == "(the result is in the next user message)"
    assert got[2]["role"] == "user"


def test_reasoning_never_reaches_a_worker() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "SECRET-STATE"}
    body = translated(input=[{"role": "user", "content": "go"}, thought, call("a"), result("a", "A")]).body
    assert b"SECRET-STATE" not in body and b"rs_1" not in body
    assert [m["role"] for m in json.loads(body)["messages"]] == ["user", "assistant", "tool"]


def test_free_form_calls_are_functions_with_one_text() -> None:
    tool = {
        "type": "custom",
        "name": "patch",
        "description": "Edits.",
        "format": {"type": "grammar", "syntax": "lark", "definition": "start: X"},
    }
    history = [
        {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": 'say "x"\n'},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "done"},
    ]
    made = translated(tools=[tool, FUNCTION], input=history)
    body = json.loads(made.body)
    assert made.context.custom_tools == {"patch"}
    function = body["tools"][0]["function"]
    assert function["name"] == "patch"
    assert function["description"] == "Edits.\n\nThe input must follow this lark grammar:\nstart: X"
    assert function["parameters"]["required"] == ["input"]
    made_call = body["messages"][0]["tool_calls"][0]["function"]
    assert json.loads(made_call["arguments"]) == {"input": 'say "x"\n'}


def test_function_tools_are_nested() -> None:
    tool = {**FUNCTION, "description": "Looks.", "strict": True, "defer_loading": False}
    assert chat(tools=[tool], tool_choice="required", parallel_tool_calls=False) == {
        "model": "pointsman",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "look",
                    "description": "Looks.",
                    "parameters": {"type": "object", "properties": {}},
                    "strict": True,
                },
            }
        ],
        "tool_choice": "required",
        "parallel_tool_calls": False,
    }


def test_choices_of_tools() -> None:
    other = {**FUNCTION, "name": "other"}
    named = chat(tools=[FUNCTION, other], tool_choice={"type": "function", "name": "other"})
    assert named["tool_choice"] == {"type": "function", "function": {"name": "other"}}
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "other"}]}
    few = chat(tools=[FUNCTION, other], tool_choice=allowed)
    assert few["tool_choice"] == "required"
    assert [tool["function"]["name"] for tool in few["tools"]] == ["other"]


def test_without_tools_nothing_is_said_of_them() -> None:
    body = chat(tools=[], tool_choice="auto", parallel_tool_calls=True)
    assert {"tools", "tool_choice", "parallel_tool_calls"}.isdisjoint(body)


def test_formats_of_text() -> None:
    schema = {"type": "object", "properties": {"headers": {"type": "string"}, "api_key": {"type": "string"}}}
    form = {"type": "json_schema", "name": "n", "schema": schema, "strict": True}
    body = chat(text={"format": form, "verbosity": "low"})
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": schema, "strict": True},
    }
    assert body["verbosity"] == "low"
    assert chat(text={"format": {"type": "json_object"}})["response_format"] == {"type": "json_object"}
    assert "response_format" not in chat(text={"format": {"type": "text"}})


def test_the_other_fields() -> None:
    body = chat(
        stream=True,
        stream_options={"include_obfuscation": False},
        max_output_tokens=99,
        reasoning={"effort": "high", "summary": "auto"},
        include=["reasoning.encrypted_content", "message.output_text.logprobs"],
        top_logprobs=3,
        temperature=0.5,
        top_p=None,
        metadata={"a": "b", "pointsman": {"quality": 0.5}},
        store=False,
        user="u",
        prompt_cache_key="k",
        service_tier="flex",
        truncation="auto",
        max_tool_calls=4,
        client_metadata={"x": "y"},
        background=False,
        previous_response_id=None,
        top_k=20,
    )
    del body["model"], body["messages"]
    assert body == {
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_completion_tokens": 99,
        "reasoning_effort": "high",
        "logprobs": True,
        "top_logprobs": 3,
        "temperature": 0.5,
        "metadata": {"a": "b", "pointsman": {"quality": 0.5}},
        "store": False,
        "user": "u",
        "prompt_cache_key": "k",
        "service_tier": "flex",
        "top_k": 20,
    }


def test_the_hints_reach_the_core() -> None:
    read = parse_chat(translated(metadata={"pointsman": {"quality": 0.25}}).body, [])
    assert read.hints.quality == 0.25
    assert "metadata" not in read.fields


def test_numbers_keep_their_bytes() -> None:
    body = to_chat(b'{"model":"m","input":"hi","temperature":0.10,"seed":123456789012345678901234567890}').body
    assert b'"temperature":0.10' in body
    assert b'"seed":123456789012345678901234567890' in body
