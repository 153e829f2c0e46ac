"""A chat completion as an Anthropic message; and what whole answers and streams share.

Anthropic's `input_tokens` leave out what was read from or written to a cache, which chat completions count
in. A worker's unsigned reasoning is shown as thinking only where the client asked for thinking: a client that
did not takes the first block for the answer. Signed thinking is always shown, since it must come back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from harness.gateway.surfaces.anthropic import ReplyContext
from pointsman.upstream.anthropic_messages import tool_input
from pointsman.upstream.anthropic_reply import FINISH
from pointsman.upstream.anthropic_state import LAYOUT, THINKING
from pointsman.upstream.usage import CHARS_PER_TOKEN

Block = dict[str, Any]
_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}


def from_chat(reply: bytes, context: ReplyContext) -> bytes:
    """The message for a `chat.completion` that was checked to be one; its first choice is the answer."""
    value = msgspec.json.decode(reply)
    choice = value["choices"][0]
    held = choice.get("message")
    message: Mapping[str, Any] = held if isinstance(held, dict) else {}
    identity = message_id(value.get("id"))
    content = _content(message, context, identity)
    refused = bool(message.get("refusal"))
    reason, sequence = stop_of(choice, context, tools=bool(calls_of(message)), refused=refused)
    characters = sum(len(str(item)) for block in content for item in block.values())
    return msgspec.json.encode(
        {
            "id": identity,
            "type": "message",
            "role": "assistant",
            "model": value.get("model") or context.model,
            "content": content,
            "stop_reason": reason,
            "stop_sequence": sequence,
            "usage": usage_of(value.get("usage"), context, characters),
        }
    )


def message_id(identity: Any) -> str:
    """`msg_` before the completion's id, so that the id of either leads to the other."""
    text = identity if isinstance(identity, str) and identity else "unknown"
    return text if text.startswith("msg_") else f"msg_{text}"


def stop_of(choice: Mapping[str, Any], context: ReplyContext, *, tools: bool, refused: bool) -> tuple[str, str | None]:
    """`stop_reason` and `stop_sequence` for a choice that has ended."""
    native, finish = choice.get("native_finish_reason"), choice.get("finish_reason")
    # vLLM and SGLang name the sequence that stopped them in `stop_reason`, `matched_stop`.
    named = [choice.get(name) for name in ("stop_sequence", "stop_reason", "matched_stop")]
    sequence = next((text for text in named if isinstance(text, str) and text in context.stop_sequences), None)
    if isinstance(native, str) and native in FINISH:
        return native, sequence if native == "stop_sequence" else None
    if refused:
        return "refusal", None
    if tools and finish in ("stop", "tool_calls", "function_call", None):
        return "tool_use", None  # some workers say "stop" after a call; a client acts on tool_use alone
    if sequence is not None and finish == "stop":
        return "stop_sequence", sequence
    return _REASONS.get(str(finish), "end_turn"), None


def usage_of(usage: Any, context: ReplyContext, characters: int) -> dict[str, Any]:
    """Anthropic's counts, none twice; estimated from `characters` of output where the worker gave none."""
    if not isinstance(usage, dict):
        return {
            "input_tokens": context.prompt_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": -(-characters // CHARS_PER_TOKEN),
        }
    details = _group(usage, "prompt_tokens_details")
    total = _count(usage, "prompt_tokens")
    read = min(_count(details, "cached_tokens"), total)
    written = min(_count(details, "cache_creation_tokens"), total - read)
    counts: dict[str, Any] = {
        "input_tokens": total - read - written,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": _count(usage, "completion_tokens"),
    }
    answered = _group(usage, "completion_tokens_details")
    if "reasoning_tokens" in answered:
        counts["output_tokens_details"] = {"thinking_tokens": _count(answered, "reasoning_tokens")}
    for group, name in ((details, "orchestration_input_tokens"), (answered, "orchestration_output_tokens")):
        if name in group:
            counts[name] = group[name]
    return counts


def tool_id(identity: Any, message: str, index: int) -> str:
    """A call's id as the worker gave it, so that its result finds back; one of our own where it gave none."""
    return identity if isinstance(identity, str) and identity else f"toolu_{message}_{index}"


def calls_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tool calls of a message or delta."""
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def shown(block: Any, context: ReplyContext) -> Block | None:
    """A whole thinking block as the client sees it; None where it is not for showing."""
    if not isinstance(block, dict):
        return None
    if block.get("type") == "redacted_thinking" and isinstance(block.get("data"), str):
        return {"type": "redacted_thinking", "data": block["data"]}
    if block.get("type") != "thinking":
        return None
    thought = {
        "type": "thinking",
        "thinking": str(block.get("thinking") or ""),
        "signature": str(block.get("signature") or ""),
    }
    return thought if thought["signature"] or (context.thinking and thought["thinking"]) else None


def text_of(content: Any) -> str:
    """The text of a content that is a text, a list of parts, or null."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(text for text in parts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _content(message: Mapping[str, Any], context: ReplyContext, identity: str) -> list[Block]:
    thinking = _thinking(message, context)
    text = text_of(message.get("content")) or text_of(message.get("refusal"))
    calls = [_tool_use(call, identity, index) for index, call in enumerate(calls_of(message))]
    layout = message.get(LAYOUT)
    if not isinstance(layout, list) or not _fits(layout, len(thinking), len(text), len(calls)):
        return [*thinking, *([{"type": "text", "text": text}] if text else []), *calls]
    blocks: list[Block] = []
    for item in layout:
        if isinstance(item, int):
            blocks.append({"type": "text", "text": text[:item]})
            text = text[item:]
        else:
            blocks.append((thinking if item == "thinking" else calls).pop(0))
    return blocks


def _fits(layout: list[Any], thinking: int, text: int, calls: int) -> bool:
    """Whether a layout tells the place of every block there is, and of no other."""
    lengths = [item for item in layout if isinstance(item, int) and not isinstance(item, bool) and item > 0]
    counts = (layout.count("thinking"), layout.count("tool_use"))
    return counts == (thinking, calls) and sum(lengths) == text and len(lengths) + sum(counts) == len(layout)


def _thinking(message: Mapping[str, Any], context: ReplyContext) -> list[Block]:
    held = message.get(THINKING)
    blocks = [thought for block in held if (thought := shown(block, context))] if isinstance(held, list) else []
    if blocks:
        return blocks
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    if context.thinking and isinstance(reasoning, str) and reasoning:
        return [{"type": "thinking", "thinking": reasoning, "signature": ""}]
    return []


def _tool_use(call: Mapping[str, Any], message: str, index: int) -> Block:
    held = call.get("function")
    function: Mapping[str, Any] = held if isinstance(held, dict) else {}
    return {
        "type": "tool_use",
        "id": tool_id(call.get("id"), message, index),
        "name": str(function.get("name") or ""),
        "input": tool_input(function.get("arguments")),
    }


def _group(usage: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = usage.get(name)
    return value if isinstance(value, dict) else {}


def _count(counts: Mapping[str, Any], name: str) -> int:
    value = counts.get(name)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else 0
