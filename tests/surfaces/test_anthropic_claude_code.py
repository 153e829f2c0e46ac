"""The shape of Claude Code's traffic: what the core makes of it, and what an Anthropic-native worker gets."""

from __future__ import annotations

import json
from copy import deepcopy

from harness.gateway.request import parse_chat
from harness.gateway.surfaces.anthropic import count_tokens, to_chat
from pointsman.upstream.anthropic import request_of
from pointsman.upstream.anthropic_state import betas_of, seal, without_native
from tests.support.anthropic_traffic import claude_code_request

HEADERS = [
    (b"anthropic-version", b"2023-06-01"),
    (b"anthropic-beta", b"claude-code-20250219,oauth-2025-04-20,interleaved-thinking-2025-05-14"),
    (b"x-api-key", b"client-key"),
    (b"x-app", b"cli"),
    (b"content-type", b"application/json"),
]


def test_the_core_routes_on_the_persons_ask() -> None:
    chat = to_chat(json.dumps(claude_code_request()).encode(), HEADERS)
    request = parse_chat(chat.body, HEADERS)
    conversation = request.conversation
    assert conversation.ask == "Why does the build fail?"
    assert conversation.in_tool_loop
    assert set(conversation.tool_call_ids) >= {"toolu_01A", "toolu_01B"}
    assert request.stream and request.wants_usage and request.tools and request.output_tokens == 32000
    assert chat.context.stream and chat.context.thinking
    assert b"client-key" not in chat.body


def test_a_conversation_keeps_its_fingerprint() -> None:
    """The billing text of the first system block changes with every request."""
    first, second = claude_code_request(), claude_code_request()
    second["system"][0]["text"] = second["system"][0]["text"].replace("4f1a2", "99999")
    second["messages"] += [
        {"role": "assistant", "content": [{"type": "text", "text": "It is the Makefile."}]},
        {"role": "user", "content": [{"type": "text", "text": "Mend it."}]},
    ]
    openings = {
        parse_chat(to_chat(json.dumps(body).encode(), HEADERS).body, []).conversation.opening
        for body in (first, second)
    }
    assert len(openings) == 1 and "billing" not in next(iter(openings))


def test_an_anthropic_native_worker_gets_what_was_sent() -> None:
    sent = claude_code_request()
    thought = sent["messages"][1]["content"][0]
    seen = deepcopy(sent)
    seen["messages"][1]["content"][0] = seal(thought, "opus")  # as the gateway gave it to the client
    request = parse_chat(to_chat(json.dumps(seen).encode(), HEADERS).body, HEADERS)
    expected = {**sent, "model": "claude-x"}
    expected["messages"][2]["content"][0]["content"] = [{"type": "text", "text": "exit 2"}]
    assert json.loads(request_of(request.fields, "claude-x", 1, origin="opus")) == expected
    assert betas_of(request.fields) == ("claude-code-20250219", "interleaved-thinking-2025-05-14")


def test_after_a_switch_the_thinking_stays_behind_and_the_loop_is_one_that_the_api_takes() -> None:
    sent = claude_code_request()
    request = parse_chat(to_chat(json.dumps(sent).encode(), HEADERS).body, HEADERS)
    made = json.loads(request_of(request.fields, "claude-x", 1, origin="opus"))
    assert [block["type"] for block in made["messages"][1]["content"]] == ["text", "tool_use", "tool_use"]
    assert "thinking" not in made and made["tools"][0]["name"] == "Bash"


def test_another_worker_gets_plain_chat() -> None:
    request = parse_chat(to_chat(json.dumps(claude_code_request()).encode(), HEADERS).body, HEADERS)
    made = without_native(request.fields, reasoning=True)
    text = json.dumps({name: json.loads(bytes(v)) if not isinstance(v, list | str) else v for name, v in made.items()})
    for mark in ("anthropic", "thinking_blocks", "cache_control", "c2ln", "is_error", "billing", "context_management"):
        assert mark not in text
    assert made["reasoning_effort"] == "high"
    assert [m["role"] for m in made["messages"]] == ["system", "user", "assistant", "tool", "tool", "user"]
    assert made["messages"][3]["content"] == "Error: exit 2"


def test_its_tokens_are_counted() -> None:
    body = claude_code_request()
    del body["max_tokens"]
    assert 5_000 < count_tokens(json.dumps(body).encode()) < 8_000
