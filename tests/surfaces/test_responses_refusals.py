"""Responses requests that are refused: each names its parameter and says what was expected."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.gateway.surfaces.responses import in_own_words, to_chat
from pointsman.errors import RequestError

FUNCTION = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}


def call(call_id: str, arguments: str = "{}", name: str = "look") -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def result(call_id: str, output: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def refused(**fields: Any) -> RequestError:
    with pytest.raises(RequestError) as raised:
        to_chat(json.dumps({"model": "pointsman", "input": "hi", **fields}).encode())
    assert raised.value.status == 400
    assert raised.value.type == "invalid_request_error"
    return raised.value


@pytest.mark.parametrize("name", ["previous_response_id", "conversation", "prompt"])
def test_nothing_is_kept_between_requests(name: str) -> None:
    error = refused(**{name: "x_1"})
    assert (error.param, error.code) == (name, "unsupported_parameter")
    assert "not kept here" in error.message


@pytest.mark.parametrize(
    ("name", "value", "instead"),
    [
        ("messages", [], "give input instead"),
        ("max_tokens", 5, "give max_output_tokens instead"),
        ("response_format", {"type": "text"}, "give text.format instead"),
        ("n", 2, "not part of the Responses API"),
    ],
)
def test_chat_parameters_say_where_they_went(name: str, value: Any, instead: str) -> None:
    error = refused(**{name: value})
    assert error.param == name
    assert error.message == f"{name}: a parameter of chat completions; {instead}"


@pytest.mark.parametrize("kind", ["web_search", "file_search", "mcp", "computer_use_preview", "local_shell"])
def test_hosted_tools_are_refused(kind: str) -> None:
    error = refused(tools=[FUNCTION, {"type": kind}])
    assert (error.param, error.code) == ("tools[1].type", "unsupported_tool")
    assert error.message.startswith(f"tools[1].type: '{kind}' is a tool that is not served here")


@pytest.mark.parametrize(
    ("fields", "param", "expected"),
    [
        ({"model": None}, "model", "a text that is not empty"),
        ({"model": 3}, "model", "a text that is not empty"),
        ({"input": None}, "input", "a text, or a list with at least one item"),
        ({"input": []}, "input", "a text, or a list with at least one item"),
        ({"input": {"role": "user"}}, "input", "a text, or a list with at least one item"),
        ({"input": [{"type": "reasoning", "summary": []}]}, "input", "at least one item besides reasoning"),
        ({"input": ["hi"]}, "input[0]", "an object"),
        ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role", "user, assistant, system or developer"),
        ({"input": [{"role": "user", "content": 3}]}, "input[0].content", "a text or a list of parts"),
        ({"input": [{"role": "user", "content": [3]}]}, "input[0].content[0]", "an object"),
        ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]}, "input[0].content[0].text", "a text"),
        ({"stream": "yes"}, "stream", "true or false"),
        ({"temperature": "hot"}, "temperature", "a number"),
        ({"max_output_tokens": 1.5}, "max_output_tokens", "a whole number, 0 or more"),
        ({"max_output_tokens": True}, "max_output_tokens", "a whole number, 0 or more"),
        ({"instructions": ["x"]}, "instructions", "a text"),
        ({"metadata": "x"}, "metadata", "an object"),
        ({"reasoning": {"effort": 3}}, "reasoning.effort", "a text that is not empty"),
        ({"text": {"format": "json"}}, "text.format", "an object"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type", "text, json_object or json_schema"),
        ({"text": {"format": {"type": "json_schema", "name": "n"}}}, "text.format.schema", "an object"),
        ({"tools": "x"}, "tools", "a list of objects"),
        ({"tools": [{"type": "function"}]}, "tools[0].name", "a text that is not empty"),
        ({"tools": [{**FUNCTION, "parameters": 3}]}, "tools[0].parameters", "an object"),
        ({"tools": [{"name": "x"}]}, "tools[0].type", '"function" or "custom"'),
        (
            {"tools": [FUNCTION], "tool_choice": {"type": "function", "name": "gone"}},
            "tool_choice.name",
            "the name of one of tools",
        ),
        (
            {"tools": [FUNCTION], "tool_choice": {"type": "web_search_preview"}},
            "tool_choice",
            "none, auto, required, or an object of type function, custom or allowed_tools",
        ),
    ],
)
def test_what_does_not_fit_names_its_parameter(fields: dict[str, Any], param: str, expected: str) -> None:
    error = refused(**fields)
    assert (error.param, error.message) == (param, f"{param}: expected {expected}")


@pytest.mark.parametrize(
    ("items", "param", "words"),
    [
        ([{"type": "item_reference", "id": "msg_1"}], "input[0]", "give the item itself"),
        ([{"type": "web_search_call", "id": "ws_1"}], "input[0].type", "expected one of message"),
        ([{"id": "x"}], "input[0].type", "expected one of message"),
        ([result("a", "A")], "input[0].call_id", "no tool call a stands before this output"),
        ([call("a")], "input", "no output for the tool call a"),
        ([{"type": "function_call", "name": "x", "arguments": "{}"}], "input[0].call_id", "expected a text"),
        ([{**call("a"), "arguments": {}}], "input[0].arguments", "expected a text"),
        ([{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}], "input[0].content[0].file_id", ""),
        (
            [{"role": "user", "content": [{"type": "input_file", "file_url": "http://x"}]}],
            "input[0].content[0].file_url",
            "no files are held here; give the file's data in file_data",
        ),
    ],
)
def test_items_that_cannot_be_told(items: list[Any], param: str, words: str) -> None:
    error = refused(input=items)
    assert error.param == param
    assert words in error.message


@pytest.mark.parametrize("name", ["api_base", "extra_headers", "x-api-key"])
def test_no_request_names_an_address(name: str) -> None:
    assert refused(**{name: "http://169.254.169.254"}).code == "field_not_allowed"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"[]", "must be a JSON object"),
        (b"{", "not valid JSON"),
        (b'{"model":"m","input":"\xff"}', "not UTF-8"),
        (b'{"model":"m","input":"\\ud800"}', "not valid JSON"),
        (b'{"model":"m","input":' + b"[" * 200 + b"]" * 200 + b"}", "nested deeper"),
        (b'{"model":"m","input":"x","temperature":NaN}', "not valid JSON"),
    ],
)
def test_hostile_bodies(body: bytes, words: str) -> None:
    with pytest.raises(RequestError, match=words) as raised:
        to_chat(body)
    assert raised.value.status == 400


def test_the_cores_refusals_in_this_apis_words() -> None:
    core = RequestError("messages[2].content: expected a text", param="messages[2].content", code="c", retry_after=2)
    own = in_own_words(core)
    assert (own.param, own.message) == ("input[2].content", "input[2].content: expected a text")
    assert (own.code, own.retry_after, own.status) == ("c", 2, 400)
    other = RequestError("model: no such model", param="model")
    assert in_own_words(other) is other
