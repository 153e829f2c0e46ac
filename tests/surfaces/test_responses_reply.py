"""Whole chat completions as Response objects, each read by OpenAI's own types."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types.responses import Response

from harness.gateway.surfaces.responses import decision_id, from_chat, to_chat
from pointsman.errors import UpstreamError

DECISION = "0199a3c4-5e6f-7a8b-9c0d-1e2f3a4b5c6d"
STEM = "0199a3c45e6f7a8b9c0d1e2f3a4b5c6d"


def answered(reply: Any, **fields: Any) -> dict[str, Any]:
    """The Response to `reply`, after OpenAI's types have read it strictly."""
    context = to_chat(json.dumps({"model": "pointsman", "input": "hi", **fields}).encode()).context
    given = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
    body = from_chat(given, context, identity=DECISION, created_at=1_760_000_000.9, clock=lambda: 1_760_000_004.2)
    Response.model_validate_json(body, strict=True)
    decoded: dict[str, Any] = json.loads(body)
    return decoded


def completion(finish: str | None = "stop", usage: Any = None, logprobs: Any = None, **message: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish, "logprobs": logprobs}
    return {"id": "chatcmpl-1", "object": "chat.completion", "model": "small-1", "choices": [choice], "usage": usage}


def test_the_whole_object() -> None:
    tool = {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False}
    response = answered(
        completion(content="Hello."),
        instructions="i",
        tools=[tool],
        tool_choice="auto",
        temperature=0.2,
        max_output_tokens=50,
        reasoning={"effort": "low"},
        metadata={"a": "b", "pointsman": {"quality": 1}},
        text={"verbosity": "low"},
        store=False,
        truncation="auto",
    )
    assert response == {
        "id": f"resp_{STEM}",
        "object": "response",
        "created_at": 1_760_000_000,
        "completed_at": 1_760_000_004,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": "small-1",
        "output": [
            {
                "id": f"msg_{STEM}00",
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": "Hello."}],
            }
        ],
        "usage": None,
        "background": False,
        "instructions": "i",
        "max_output_tokens": 50,
        "max_tool_calls": None,
        "metadata": {"a": "b"},
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "reasoning": {"effort": "low", "summary": None},
        "safety_identifier": None,
        "service_tier": "default",
        "store": False,
        "temperature": 0.2,
        "text": {"format": {"type": "text"}, "verbosity": "low"},
        "tool_choice": "auto",
        "tools": [tool],
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "user": None,
    }


def test_reasoning_text_and_calls_in_order() -> None:
    calls = [
        {"id": "call_a", "type": "function", "function": {"name": "look", "arguments": '{"x":1}'}},
        {"type": "function", "function": {"name": "look", "arguments": {"x": 2}}},
    ]
    output = answered(completion("tool_calls", reasoning_content="Hm.", content="I look.", tool_calls=calls))["output"]
    assert [item["type"] for item in output] == ["reasoning", "message", "function_call", "function_call"]
    assert output[0]["summary"] == []
    assert output[0]["content"] == [{"type": "reasoning_text", "text": "Hm."}]
    assert [(item["call_id"], item["arguments"]) for item in output[2:]] == [
        ("call_a", '{"x":1}'),
        (f"call_{STEM}03", '{"x":2}'),
    ]
    assert len({item["id"] for item in output}) == 4


def test_reasoning_is_a_summary_where_one_was_asked_for() -> None:
    asked = {"reasoning": {"summary": "auto"}}
    item = answered(completion(reasoning="Hm.", content="x"), **asked)["output"][0]
    assert item["summary"] == [{"type": "summary_text", "text": "Hm."}]
    assert "content" not in item


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [('{"input":"*** Begin"}', "*** Begin"), ("*** Begin", "*** Begin"), ('{"patch":"x"}', '{"patch":"x"}'), ("", "")],
)
def test_a_free_form_call_has_its_text_back(arguments: str, expected: str) -> None:
    calls = [{"id": "c", "type": "function", "function": {"name": "patch", "arguments": arguments}}]
    tools = [{"type": "custom", "name": "patch"}]
    (item,) = answered(completion("tool_calls", content=None, tool_calls=calls), tools=tools)["output"]
    assert (item["type"], item["name"], item["call_id"], item["input"]) == ("custom_tool_call", "patch", "c", expected)


@pytest.mark.parametrize(("finish", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")])
def test_incomplete_answers_say_why(finish: str, reason: str) -> None:
    response = answered(completion(finish, reasoning="Hm.", content="To be"))
    assert response["status"] == "incomplete"
    assert response["incomplete_details"] == {"reason": reason}
    assert response["completed_at"] is None
    assert [item["status"] for item in response["output"]] == ["completed", "incomplete"]


@pytest.mark.parametrize("finish", ["stop", "tool_calls", "eos", None])
def test_any_other_ending_is_complete(finish: str | None) -> None:
    assert answered(completion(finish, content="x"))["status"] == "completed"


def test_a_refusal_is_a_part_of_its_own() -> None:
    (item,) = answered(completion(content=None, refusal="I will not."))["output"]
    assert item["content"] == [{"type": "refusal", "refusal": "I will not."}]


def test_usage_keeps_orchestration_apart() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 64, "orchestration_input_tokens": 300},
        "completion_tokens_details": {"reasoning_tokens": 5, "orchestration_output_tokens": 3},
        "estimated": True,
    }
    assert answered(completion(content="x", usage=usage))["usage"] == {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 0, "orchestration_input_tokens": 300},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 5, "orchestration_output_tokens": 3},
        "total_tokens": 120,
        "estimated": True,
    }


def test_usage_without_details_or_total() -> None:
    usage = answered(completion(content="x", usage={"prompt_tokens": 4, "completion_tokens": 3}))["usage"]
    assert usage["total_tokens"] == 7
    assert usage["input_tokens_details"] == {"cached_tokens": 0, "cache_write_tokens": 0}


def test_log_probabilities() -> None:
    token = {"token": "é", "logprob": -0.5, "bytes": None, "top_logprobs": [{"token": "e", "logprob": -1.0}]}
    (item,) = answered(completion(content="é", logprobs={"content": [token]}), top_logprobs=1)["output"]
    assert item["content"][0]["logprobs"] == [
        {
            "token": "é",
            "bytes": [195, 169],
            "logprob": -0.5,
            "top_logprobs": [{"token": "e", "bytes": [101], "logprob": -1.0}],
        }
    ]


def test_content_in_parts_is_joined() -> None:
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert answered(completion(content=parts))["output"][0]["content"][0]["text"] == "ab"


def test_an_empty_answer_has_no_output() -> None:
    assert answered(completion(content=""))["output"] == []


@pytest.mark.parametrize("reply", [b"[]", b"{", b'{"choices":[]}', b'{"choices":null}', b'{"choices":["x"]}'])
def test_what_is_no_completion_is_the_workers_fault(reply: bytes) -> None:
    with pytest.raises(UpstreamError) as raised:
        answered(reply)
    assert raised.value.fault == "malformed"


def test_the_decision_is_found_again_from_the_id() -> None:
    assert decision_id(f"resp_{STEM}") == DECISION
    assert decision_id("chatcmpl-1") is None
    assert decision_id("resp_nothing") is None
