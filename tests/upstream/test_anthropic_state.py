"""The opaque fields: sealed thinking, and what a worker that is not Anthropic-native gets of them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from pointsman.upstream.anthropic_state import RESULT_BELOW, betas_of, seal, unsealed, without_native

THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "a.b+c/d=="}


def test_a_seal_comes_off_for_its_maker_only() -> None:
    sealed = seal(THOUGHT, "opus")
    assert unsealed(sealed, "opus") == THOUGHT
    assert unsealed(sealed, "haiku") is None
    assert unsealed(THOUGHT, "opus") is None
    assert "opus" not in sealed["signature"]


@pytest.mark.parametrize("block", [None, 3, {}, {"type": "text"}, {"type": "thinking"}, {**THOUGHT, "signature": ""}])
def test_what_is_no_signed_thinking_is_left_out(block: Any) -> None:
    assert unsealed(block, "") is None and unsealed(block, "opus") is None


def test_thinking_without_a_signature_is_not_sealed() -> None:
    assert seal({"type": "thinking", "thinking": "x", "signature": ""}, "opus")["signature"] == ""


def chat(**fields: Any) -> dict[str, msgspec.Raw]:
    return msgspec.json.decode(msgspec.json.encode(fields), type=dict[str, msgspec.Raw])


def plain(fields: dict[str, msgspec.Raw], *, reasoning: bool = False) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(msgspec.json.encode(without_native(fields, reasoning=reasoning)))
    return made


def test_a_request_without_opaque_fields_keeps_its_bytes() -> None:
    fields = chat(
        model="m", messages=[{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": 1}]}]
    )
    made = without_native(fields, reasoning=True)
    assert made["messages"] is fields["messages"] and made == fields


def test_thinking_that_a_chat_client_sends_back_stays_from_other_workers() -> None:
    turn = {"role": "assistant", "content": "x", "thinking_blocks": [THOUGHT], "block_layout": [1], "other": 1}
    assert plain(chat(messages=[turn]))["messages"] == [{"role": "assistant", "content": "x", "other": 1}]


def test_nothing_opaque_is_left() -> None:
    image = {"type": "image_url", "image_url": {"url": "u"}}
    fields = chat(
        anthropic={"top_k": 1, "betas": ["b"]},
        messages=[
            {"role": "system", "content": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}]},
            {"role": "assistant", "content": None, "tool_calls": [], "thinking_blocks": [THOUGHT]},
            {"role": "tool", "tool_call_id": "a", "content": "exit 2", "is_error": True, "cache_control": {}},
            {"role": "tool", "tool_call_id": "b", "content": "Error: no", "is_error": True},
            {"role": "tool", "tool_call_id": "c", "content": RESULT_BELOW},
            {"role": "user", "content": [{**image, "tool_call_id": "c"}]},
            {"role": "system", "content": "x", "anthropic": {}},
        ],
        tools=[{"type": "function", "function": {"name": "f"}, "anthropic": {"cache_control": {}}}],
    )
    assert plain(fields) == {
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "s"}]},
            {"role": "assistant", "content": None, "tool_calls": []},
            {"role": "tool", "tool_call_id": "a", "content": "Error: exit 2"},
            {"role": "tool", "tool_call_id": "b", "content": "Error: no"},
            {"role": "tool", "tool_call_id": "c", "content": RESULT_BELOW},
            {"role": "user", "content": [image]},
            {"role": "system", "content": "x"},
        ],
        "tools": [{"type": "function", "function": {"name": "f"}}],
    }
    assert betas_of(fields) == ("b",) and betas_of(chat(model="m")) == ()


@pytest.mark.parametrize(
    ("native", "effort"),
    [
        ({}, None),
        ({"thinking": {"type": "disabled"}, "output_config": {"effort": "high"}}, None),
        ({"thinking": {"type": "adaptive"}}, None),
        ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}}, "high"),
        ({"output_config": {"effort": "low"}}, "low"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, "low"),
        ({"thinking": {"type": "enabled", "budget_tokens": 8000}}, "medium"),
        ({"thinking": {"type": "enabled", "budget_tokens": 31999}}, "high"),
        ({"thinking": {"type": "enabled", "budget_tokens": "x"}}, None),
    ],
)
def test_the_wish_for_thinking_reaches_a_worker_that_reasons(native: dict[str, Any], effort: str | None) -> None:
    fields = chat(messages=[{"role": "user", "content": "x"}], anthropic=native)
    assert plain(fields, reasoning=True).get("reasoning_effort") == effort
    assert "reasoning_effort" not in plain(fields)
