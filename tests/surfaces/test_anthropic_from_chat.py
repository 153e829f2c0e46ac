"""A chat completion as an Anthropic message, and errors in Anthropic's shape."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.gateway.surfaces.anthropic import ReplyContext
from harness.gateway.surfaces.anthropic_errors import TOO_LONG, error_body
from harness.gateway.surfaces.anthropic_reply import from_chat
from pointsman.errors import RequestError

CONTEXT = ReplyContext(model="pointsman", stop_sequences=("END",), prompt_tokens=25)
USAGE = {
    "prompt_tokens": 17_111,
    "completion_tokens": 90,
    "total_tokens": 17_201,
    "prompt_tokens_details": {"cached_tokens": 17_002, "cache_creation_tokens": 100, "orchestration_input_tokens": 3},
    "completion_tokens_details": {"reasoning_tokens": 50, "orchestration_output_tokens": 4},
}


def translate(
    message: dict[str, Any], context: ReplyContext = CONTEXT, usage: Any = None, **choice: Any
) -> dict[str, Any]:
    given = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop", **choice}
    body = {"id": "chatcmpl-1", "object": "chat.completion", "model": "w", "choices": [given], "usage": usage}
    made: dict[str, Any] = json.loads(from_chat(json.dumps(body).encode(), context))
    return made


def call(name: str, arguments: Any, identity: Any = "call_1") -> dict[str, Any]:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_a_text() -> None:
    assert translate({"content": "Hello"}, usage=USAGE) == {
        "id": "msg_chatcmpl-1",
        "type": "message",
        "role": "assistant",
        "model": "w",
        "content": [{"type": "text", "text": "Hello"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 9,
            "cache_creation_input_tokens": 100,
            "cache_read_input_tokens": 17_002,
            "output_tokens": 90,
            "output_tokens_details": {"thinking_tokens": 50},
            "orchestration_input_tokens": 3,
            "orchestration_output_tokens": 4,
        },
    }


def test_input_tokens_are_counted_once_and_never_negative() -> None:
    for cached, written in ((0, 0), (60, 0), (60, 40), (60, 90), (500, 500)):
        details = {"cached_tokens": cached, "cache_creation_tokens": written}
        usage = translate(
            {"content": "x"}, usage={"prompt_tokens": 100, "completion_tokens": 1, "prompt_tokens_details": details}
        )["usage"]
        parts = [usage[n] for n in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")]
        assert sum(parts) == 100 and min(parts) >= 0


def test_calls_after_text() -> None:
    made = translate({"content": "I call.", "tool_calls": [call("f", '{"x": 1}'), call("g", "", "call_2")]})
    assert made["content"] == [
        {"type": "text", "text": "I call."},
        {"type": "tool_use", "id": "call_1", "name": "f", "input": {"x": 1}},
        {"type": "tool_use", "id": "call_2", "name": "g", "input": {}},
    ]
    assert made["stop_reason"] == "tool_use"


@pytest.mark.parametrize("arguments", ["{broken", "[1]", '"text"', "NaN"])
def test_arguments_that_are_no_object_are_not_hidden(arguments: str) -> None:
    made = translate({"content": None, "tool_calls": [call("f", arguments)]}, finish_reason="length")
    assert made["content"] == [{"type": "tool_use", "id": "call_1", "name": "f", "input": {"raw_arguments": arguments}}]
    assert made["stop_reason"] == "max_tokens"


def test_a_call_without_id_gets_one() -> None:
    assert translate({"tool_calls": [call("f", "{}", None)]})["content"][0]["id"] == "toolu_msg_chatcmpl-1_0"


@pytest.mark.parametrize(
    ("choice", "reason", "sequence"),
    [
        ({"finish_reason": "length"}, "max_tokens", None),
        ({"finish_reason": "content_filter"}, "refusal", None),
        ({"finish_reason": None}, "end_turn", None),
        ({"finish_reason": "stop", "stop_reason": "END"}, "stop_sequence", "END"),
        ({"finish_reason": "stop", "matched_stop": "END"}, "stop_sequence", "END"),
        ({"finish_reason": "stop", "stop_reason": 128009}, "end_turn", None),
        ({"finish_reason": "stop", "native_finish_reason": "STOP"}, "end_turn", None),
        ({"finish_reason": "stop", "native_finish_reason": "pause_turn"}, "pause_turn", None),
        (
            {"finish_reason": "stop", "native_finish_reason": "stop_sequence", "stop_sequence": "END"},
            "stop_sequence",
            "END",
        ),
    ],
)
def test_how_it_ended(choice: dict[str, Any], reason: str, sequence: str | None) -> None:
    made = translate({"content": "x"}, **choice)
    assert (made["stop_reason"], made["stop_sequence"]) == (reason, sequence)


def test_refusals_parts_and_nothing() -> None:
    made = translate({"content": None, "refusal": "No."})
    assert made["content"] == [{"type": "text", "text": "No."}] and made["stop_reason"] == "refusal"
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert translate({"content": parts})["content"] == [{"type": "text", "text": "ab"}]
    assert translate({"content": None})["content"] == []


def test_reasoning_is_shown_to_those_who_asked() -> None:
    asked = ReplyContext(model="m", thinking=True)
    message = {"content": "x", "reasoning_content": "hm"}
    assert translate(message, asked)["content"][0] == {"type": "thinking", "thinking": "hm", "signature": ""}
    assert translate(message)["content"] == [{"type": "text", "text": "x"}]


@pytest.mark.parametrize("layout", [["thinking"], [1, "tool_use"], [1], [True, 1], "x", [2, 0]])
def test_a_layout_that_does_not_fit_is_not_followed(layout: Any) -> None:
    assert translate({"content": "ab", "block_layout": layout})["content"] == [{"type": "text", "text": "ab"}]


def test_usage_is_estimated_where_there_is_none() -> None:
    usage = translate({"content": "x" * 400})["usage"]
    assert usage["input_tokens"] == 25 and 100 <= usage["output_tokens"] <= 102


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (409, "invalid_request_error"),
        (413, "request_too_large"),
        (422, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (502, "api_error"),
        (503, "overloaded_error"),
        (504, "timeout_error"),
        (529, "overloaded_error"),
    ],
)
def test_errors(status: int, kind: str) -> None:
    assert json.loads(error_body(RequestError("why", status=status))) == {
        "type": "error",
        "error": {"type": kind, "message": "why"},
    }


def test_a_prompt_that_does_not_fit_is_said_in_the_words_that_agents_know() -> None:
    error = RequestError("it does not fit", code="context_length_exceeded")
    assert json.loads(error_body(error))["error"]["message"] == f"{TOO_LONG}: it does not fit"
