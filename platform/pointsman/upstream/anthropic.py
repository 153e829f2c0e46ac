"""A worker that speaks Anthropic's Messages API: its request from a chat request, and its own headers.

What has no like there: `json_object` becomes a line of the system text (a `json_schema` becomes
`output_config.format`); a temperature above 1 becomes 1; blank stop sequences are left out; `seed`, the
penalties, `logit_bias` and `logprobs` are left out, being wishes; `n` above 1, audio and the legacy
`functions` are refused, being what the client's code relies on. Messages are in `anthropic_messages`,
replies in `anthropic_reply` and `anthropic_stream`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from pointsman.upstream.anthropic_messages import to_messages
from pointsman.upstream.anthropic_state import CACHE, NATIVE, decoded, refused

MESSAGES = "/messages"
VERSION = "2023-06-01"
JSON_ONLY = "Answer with one JSON object and nothing else."

_CHOICES = {"auto": "auto", "required": "any", "none": "none"}
_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max"}
_OURS = frozenset(
    [
        "model",
        "messages",
        "max_tokens",
        "stream",
        "system",
        "tools",
        "tool_choice",
        "stop_sequences",
        "temperature",
        "top_p",
        "betas",
        "preamble",
        "mcp_servers",
    ]
)
"""What the chat fields say, or what is no field of a request: never taken from the client's opaque field."""


def headers(betas: Sequence[str] = ()) -> dict[str, str]:
    """What this API wants of a call besides type and key; `betas` is `anthropic_state.betas_of` the request."""
    given = {"anthropic-version": VERSION}
    if betas:
        given["anthropic-beta"] = ",".join(betas)
    return given


def request_of(
    chat_fields: Mapping[str, Any], worker_model: str, default_max_tokens: int, *, origin: str = ""
) -> bytes:
    """The body of `POST /v1/messages` for a chat body's top-level fields, raw or decoded.

    `origin` is the worker's name: only thinking with its seal goes back to it. Raises
    `UpstreamError("bad_request")` for what this API cannot do.
    """
    fields = {name: value for name, raw in chat_fields.items() if (value := decoded(raw)) is not None}
    if fields.get("n", 1) != 1:
        raise refused("n: this worker gives one choice per request")
    if fields.get("functions"):
        raise refused("functions: this worker takes tools only")
    given = fields.get(NATIVE)
    native: dict[str, Any] = given if isinstance(given, dict) else {}
    system, messages = to_messages(fields.get("messages") or [], origin)
    system = [*_preamble(native), *system]
    body: dict[str, Any] = {
        "model": worker_model,
        "max_tokens": _max_tokens(fields, default_max_tokens),
        "messages": messages,
        **_sampling(fields),
        **_tools(fields),
    }
    _output(body, fields, system)
    if system:
        body["system"] = _plain_system(system)
    if (user := fields.get("user") or fields.get("safety_identifier")) and isinstance(user, str):
        body["metadata"] = {"user_id": user[:256]}
    _add_native(body, native)
    _check_thinking(body)
    if fields.get("stream") is True:
        body["stream"] = True
    return msgspec.json.encode(body)


def _preamble(native: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What an Anthropic client's system text began with, for its own provider."""
    texts = native.get("preamble")
    return [{"type": "text", "text": text} for text in texts if text] if isinstance(texts, list) else []


def _max_tokens(fields: Mapping[str, Any], default: int) -> int:
    for name in ("max_completion_tokens", "max_tokens"):
        value = fields.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return default


def _sampling(fields: Mapping[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {}
    temperature = fields.get("temperature")
    if isinstance(temperature, int | float):
        body["temperature"] = min(temperature, 1)
    for name in ("top_p", "top_k"):
        if name in fields:
            body[name] = fields[name]
    stop = fields.get("stop")
    sequences = [stop] if isinstance(stop, str) else stop if isinstance(stop, list) else []
    if kept := [text for text in sequences if isinstance(text, str) and text.strip()]:
        body["stop_sequences"] = kept
    return body


def _tools(fields: Mapping[str, Any]) -> dict[str, Any]:
    given = fields.get("tools")
    if not isinstance(given, list) or not given:
        return {}
    tools = [_tool(tool, f"tools[{index}]") for index, tool in enumerate(given)]
    body: dict[str, Any] = {"tools": tools}
    choice = _choice(fields.get("tool_choice")) or {}
    if fields.get("parallel_tool_calls") is False and choice.get("type") != "none":
        choice = {"type": "auto", **choice, "disable_parallel_tool_use": True}
    if choice:
        body["tool_choice"] = choice
    return body


def _tool(tool: Any, path: str) -> dict[str, Any]:
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise refused(f"{path}: this worker takes tools of type function only")
    extras = tool.get(NATIVE)
    made = {
        "name": function["name"],
        "input_schema": function.get("parameters") or {"type": "object", "properties": {}},
        **(extras if isinstance(extras, dict) else {}),
    }
    if function.get("description"):
        made["description"] = function["description"]
    if function.get("strict") is True:
        made["strict"] = True
    if tool.get(CACHE):
        made[CACHE] = tool[CACHE]
    return made


def _choice(choice: Any) -> dict[str, Any] | None:
    if isinstance(choice, str):
        return {"type": _CHOICES[choice]} if choice in _CHOICES else None
    function = choice.get("function") if isinstance(choice, dict) else None
    return {"type": "tool", "name": function["name"]} if isinstance(function, dict) and "name" in function else None


def _output(body: dict[str, Any], fields: Mapping[str, Any], system: list[dict[str, Any]]) -> None:
    """`response_format` and `reasoning_effort`."""
    wanted = fields.get("response_format")
    wanted = wanted if isinstance(wanted, dict) else {}
    config: dict[str, Any] = {}
    if wanted.get("type") == "json_object":
        system.append({"type": "text", "text": JSON_ONLY})
    elif wanted.get("type") == "json_schema":
        held = wanted.get("json_schema")
        schema = held.get("schema") if isinstance(held, dict) else None
        config["format"] = {"type": "json_schema", "schema": schema or {"type": "object"}}
    effort = fields.get("reasoning_effort")
    if effort == "none":
        body["thinking"] = {"type": "disabled"}
    elif isinstance(effort, str) and effort in _EFFORTS:
        config["effort"] = _EFFORTS[effort]
    if config:
        body["output_config"] = config


def _plain_system(system: Sequence[dict[str, Any]]) -> Any:
    """One text without marks is sent as a text."""
    return system[0]["text"] if len(system) == 1 and system[0].keys() == {"type", "text"} else list(system)


def _add_native(body: dict[str, Any], native: Mapping[str, Any]) -> None:
    """The client's own Anthropic fields, as it wrote them; what the chat fields say is not overwritten."""
    for name, value in native.items():
        if name in _OURS:
            continue
        if isinstance(value, dict) and isinstance(body.get(name), dict):
            body[name] = {**value, **body[name]}
        else:
            body.setdefault(name, value)


def _check_thinking(body: dict[str, Any]) -> None:
    """Leaves fixed-budget thinking out where the turn under way began without it.

    With it, the API refuses a tool loop whose assistant turn does not start with a thinking block; such a
    turn came from another worker, or from a client that does not send thinking back.
    """
    thinking = body.get("thinking")
    if not isinstance(thinking, dict) or thinking.get("type") != "enabled":
        return
    translated = body["messages"]
    if not translated or not _answers_tools(translated[-1]):
        return
    turn = next((message for message in reversed(translated) if message["role"] == "assistant"), None)
    content = turn["content"] if turn else []
    first = content[0].get("type") if isinstance(content, list) and content else "text"
    if first not in ("thinking", "redacted_thinking"):
        del body["thinking"]


def _answers_tools(message: Mapping[str, Any]) -> bool:
    content = message["content"]
    return isinstance(content, list) and any(block.get("type") == "tool_result" for block in content)
