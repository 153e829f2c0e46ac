"""A request as arguments of LiteLLM's SDK: the fields of chat completions by name, and nothing else.

The SDK takes addresses, keys, mock answers, callbacks and more as arguments beside the request's own, and its
providers read some of them out of `extra_body`. So a field that is not known here is refused, never passed on.
An image by address is refused too: for many providers the SDK fetches it itself, from this machine.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from pointsman.errors import UpstreamError
from pointsman.pool import Worker
from pointsman.upstream.body import Fields, worker_body

PASSED = frozenset(
    {
        "audio",
        "frequency_penalty",
        "function_call",
        "functions",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "modalities",
        "model",
        "n",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "prompt_cache_key",
        "reasoning_effort",
        "response_format",
        "safety_identifier",
        "seed",
        "service_tier",
        "stop",
        "stream",
        "stream_options",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
    }
)
LEFT_OUT = frozenset({"metadata", "store"})
"""A client's labels and its wish for storage at the provider: the SDK means something else by the first."""
_ADDRESS = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*://")


def litellm_body(fields: Fields, worker: Worker, *, stream: bool) -> bytes:
    """The arguments as JSON. Raises `UpstreamError` (bad_request) for what is not passed on."""
    if unknown := sorted(set(fields) - PASSED - LEFT_OUT):
        raise _refusal(f"{unknown[0]}: not a field that is passed through LiteLLM's SDK")
    body = worker_body({name: raw for name, raw in fields.items() if name in PASSED}, worker, stream=stream)
    given = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    _check_messages(_decoded(given["messages"]))
    if "tools" in given:
        _check_tools(_decoded(given["tools"]))
    return body


def arguments(body: bytes) -> dict[str, Any]:
    """The keyword arguments; a field that is null says nothing."""
    return {name: value for name, value in _decoded(msgspec.Raw(body)).items() if value is not None}


def _decoded(raw: msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _refusal(f"not JSON that LiteLLM's SDK takes: {error}") from None


def _check_messages(messages: list[dict[str, Any]]) -> None:
    for message in messages:
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and part.get("type") != "text" and _has_address(part):
                raise _refusal("images and files by address are not passed through LiteLLM's SDK; send them as data")


def _has_address(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_address(item) for item in value.values())
    if isinstance(value, list):
        return any(_has_address(item) for item in value)
    return isinstance(value, str) and _ADDRESS.match(value) is not None


def _check_tools(tools: Any) -> None:
    for tool in tools if isinstance(tools, list) else ():
        if not isinstance(tool, dict) or tool.get("type") != "function":
            raise _refusal("tools: only functions are passed through LiteLLM's SDK, which runs some others itself")


def _refusal(message: str) -> UpstreamError:
    return UpstreamError("bad_request", message, status=400, body=message)
