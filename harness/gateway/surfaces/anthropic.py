"""`POST /v1/messages` and `/v1/messages/count_tokens`: an Anthropic client's request as a chat request.

What chat completions have a word for is said in it; the rest rides in the opaque fields of
`pointsman.upstream.anthropic_state`, which only an Anthropic-native worker gets. Tools that run at Anthropic
(web search, code execution, MCP servers) are refused: no other worker of the pool could run them.
Messages are read in `anthropic_blocks`; answers are written in `anthropic_reply` and `anthropic_stream`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from harness.gateway.bounds import check_json
from harness.gateway.fields import read_fields
from harness.gateway.guard import refuse_addresses
from harness.gateway.request import IMAGE_TOKENS
from harness.gateway.surfaces.anthropic_blocks import chat_messages, expect
from pointsman.errors import RequestError
from pointsman.upstream.anthropic_state import CACHE, NATIVE
from pointsman.upstream.usage import CHARS_PER_TOKEN

PREAMBLE = "x-anthropic-billing-header:"
"""How Claude Code begins its first system text, with a part that changes from request to request. It is kept
from the system text, so that a conversation keeps its fingerprint and other workers' caches their prefix."""

Headers = Iterable[tuple[bytes, bytes]]
_BETA = re.compile(r"[a-z0-9][a-z0-9.-]{0,79}", re.ASCII)
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_TRANSLATED = frozenset(
    [
        "model",
        "max_tokens",
        "messages",
        "system",
        "tools",
        "tool_choice",
        "stop_sequences",
        "temperature",
        "top_p",
        "stream",
        "store",
    ]
)


@dataclass(frozen=True, slots=True)
class ReplyContext:
    """What the answer's translation needs of the request. `thinking`: the client asked to see thinking.

    `prompt_tokens` is an estimate, for the beginning of a stream and for workers that give no usage.
    """

    model: str
    stream: bool = False
    thinking: bool = False
    stop_sequences: tuple[str, ...] = ()
    prompt_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ChatBody:
    """The request as a body of `/v1/chat/completions`, and what the way back needs."""

    body: bytes
    context: ReplyContext


def to_chat(body: bytes, headers: Headers = ()) -> ChatBody:
    """Translates a body of `/v1/messages`. Raises `RequestError` (400) that names the parameter.

    Of the headers only `anthropic-beta` is read.
    """
    given = {name: value for name, value in _read(body).items() if value is not None}
    refuse_addresses(read_fields(body))  # here, so that a refusal has the client's own name of the field
    if "mcp_servers" in given:
        raise RequestError("mcp_servers: servers are reached by the client here, not by a worker", param="mcp_servers")
    chat: dict[str, Any] = {
        "model": expect(given.get("model"), str, "model", 'a text, such as "pointsman"'),
        "messages": [],
        "max_tokens": _max_tokens(given.get("max_tokens")),
    }
    preamble = _system(given, chat["messages"])
    chat["messages"] += chat_messages(given.get("messages"))
    _sampling(given, chat)
    _tools(given, chat)
    chat[NATIVE] = _native(given, chat, preamble, headers)
    if chat.get("stream"):
        chat["stream_options"] = {"include_usage": True}
    return ChatBody(msgspec.json.encode(chat), _context(given))


def count_tokens(body: bytes) -> int:
    """An estimate of the input tokens of a body: a quarter of its characters, and a flat count per image or file."""
    given = {name: value for name, value in _read(body).items() if value is not None}
    _system(given, [])
    chat_messages(given.get("messages"))
    tools: list[Any] = expect(given.get("tools", []), list, "tools", "a list of tools")
    for index, tool in enumerate(tools):
        expect(tool, dict, f"tools[{index}]", "an object")
    return _estimate(given)


def count_tokens_reply(body: bytes) -> bytes:
    """The reply of `/v1/messages/count_tokens`."""
    return msgspec.json.encode({"input_tokens": count_tokens(body)})


def _read(body: bytes) -> dict[str, Any]:
    check_json(body)
    try:
        value = msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise RequestError(f"the body is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise RequestError("the body must be a JSON object")
    return value


def _context(given: dict[str, Any]) -> ReplyContext:
    thinking = given.get("thinking") or {}
    return ReplyContext(
        model=given["model"],
        stream=given.get("stream") is True,
        thinking=thinking.get("type", "disabled") != "disabled",
        stop_sequences=tuple(given.get("stop_sequences") or ()),
        prompt_tokens=_estimate(given),
    )


def _max_tokens(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise RequestError("max_tokens: expected a whole number, 1 or more", param="max_tokens")
    return value


def _system(given: dict[str, Any], messages: list[dict[str, Any]]) -> list[str]:
    """Adds the system message; returns the texts that are kept from it (`PREAMBLE`)."""
    system = given.get("system")
    if system is None or system == "" or system == []:
        return []
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
    parts: list[dict[str, Any]] = []
    preamble: list[str] = []
    for index, block in enumerate(expect(blocks, list, "system", "a text or a list of text blocks")):
        path = f"system[{index}]"
        if expect(block, dict, path, "a text block").get("type") != "text":
            raise RequestError(f"{path}.type: expected text", param=f"{path}.type")
        text = expect(block.get("text"), str, f"{path}.text", "a text")
        if text.startswith(PREAMBLE):
            preamble.append(text)
        else:
            parts.append({"type": "text", "text": text, **({CACHE: block[CACHE]} if block.get(CACHE) else {})})
    if parts:
        content: Any = system if isinstance(system, str) else parts
        messages.append({"role": "system", "content": content})
    return preamble


def _sampling(given: dict[str, Any], chat: dict[str, Any]) -> None:
    for name in ("temperature", "top_p"):
        if name in given:
            value = given[name]
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise RequestError(f"{name}: expected a number from 0 to 1", param=name)
            chat[name] = value
    if "stop_sequences" in given:
        stops: list[Any] = expect(given["stop_sequences"], list, "stop_sequences", "a list of texts")
        for index, text in enumerate(stops):
            expect(text, str, f"stop_sequences[{index}]", "a text")
        if stops:
            chat["stop"] = stops
    if "store" in given:  # this gateway's own, as chat completions have it
        chat["store"] = expect(given["store"], bool, "store", "true or false")
    if "stream" in given and expect(given["stream"], bool, "stream", "true or false"):
        chat["stream"] = True


def _tools(given: dict[str, Any], chat: dict[str, Any]) -> None:
    tools: list[Any] = expect(given.get("tools", []), list, "tools", "a list of tools")
    if not tools:
        return
    chat["tools"] = [_tool(tool, f"tools[{index}]") for index, tool in enumerate(tools)]
    if "tool_choice" in given:
        _choose(given, chat)


def _choose(given: dict[str, Any], chat: dict[str, Any]) -> None:
    choice = expect(given["tool_choice"], dict, "tool_choice", "an object")
    kind = choice.get("type")
    if kind == "tool":
        name = expect(choice.get("name"), str, "tool_choice.name", "the name of a tool")
        chat["tool_choice"] = {"type": "function", "function": {"name": name}}
    elif isinstance(kind, str) and kind in _CHOICES:
        chat["tool_choice"] = _CHOICES[kind]
    else:
        raise RequestError("tool_choice.type: expected auto, any, tool or none", param="tool_choice.type")
    path = "tool_choice.disable_parallel_tool_use"
    if expect(choice.get("disable_parallel_tool_use", False), bool, path, "true or false"):
        chat["parallel_tool_calls"] = False


def _tool(tool: Any, path: str) -> dict[str, Any]:
    expect(tool, dict, path, "an object")
    if tool.get("type") not in (None, "custom"):
        raise RequestError(
            f"{path}.type: {tool['type']} is defined or run by Anthropic, and not every worker knows it; "
            "expected a tool of your own, with name and input_schema",
            param=f"{path}.type",
        )
    function: dict[str, Any] = {
        "name": expect(tool.get("name"), str, f"{path}.name", "a text"),
        "parameters": expect(tool.get("input_schema"), dict, f"{path}.input_schema", "a JSON schema"),
    }
    if tool.get("description") is not None:
        function["description"] = expect(tool["description"], str, f"{path}.description", "a text")
    if tool.get("strict") is True:
        function["strict"] = True
    known = ("name", "input_schema", "description", "strict")
    rest = {name: value for name, value in tool.items() if name not in known and value is not None}
    return {"type": "function", "function": function, **({NATIVE: rest} if rest else {})}


def _native(given: dict[str, Any], chat: dict[str, Any], preamble: list[str], headers: Headers) -> dict[str, Any]:
    """The opaque field; `metadata.pointsman` and a schema for the output are said in chat's own words."""
    native = {name: value for name, value in given.items() if name not in _TRANSLATED}
    for name in ("thinking", "metadata", "output_config"):
        if name in native:
            native[name] = dict(expect(native[name], dict, name, "an object"))
    if (metadata := native.get("metadata")) and "pointsman" in metadata:
        chat["metadata"] = {"pointsman": metadata.pop("pointsman")}
    shape = native.get("output_config", {}).pop("format", None)
    if shape is not None:
        path = "output_config.format"
        schema = expect(expect(shape, dict, path, "an object").get("schema"), dict, f"{path}.schema", "a JSON schema")
        chat["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "output", "schema": schema, "strict": True},
        }
    if betas := _betas(headers):
        native["betas"] = betas
    if preamble:
        native["preamble"] = preamble
    return {name: value for name, value in native.items() if value != {}}


def _betas(headers: Headers) -> list[str]:
    """The names in `anthropic-beta`; those of the client's own login say nothing about a worker's."""
    found = [value.decode("latin-1") for name, value in headers if name.lower() == b"anthropic-beta"]
    names = [name.strip() for value in found for name in value.split(",")]
    return [name for name in names if _BETA.fullmatch(name) and not name.startswith("oauth")]


def _estimate(given: dict[str, Any]) -> int:
    characters, media = _size([given.get("system"), given.get("messages"), given.get("tools")])
    return max(1, characters // CHARS_PER_TOKEN + media * IMAGE_TOKENS)


def _size(value: Any) -> tuple[int, int]:
    """Characters of text, and how many images and files."""
    if isinstance(value, str):
        return len(value), 0
    if isinstance(value, dict):
        source = value.get("source")
        if value.get("type") in ("image", "document") and isinstance(source, dict) and source.get("type") != "text":
            return 0, 1
        if "signature" in value or value.get("type") == "redacted_thinking":
            value = {"thinking": value.get("thinking")}
        items: Iterable[Any] = [*value.keys(), *value.values()]
    else:
        items = value if isinstance(value, list) else ()
    sizes = [_size(item) for item in items]
    return sum(size for size, _ in sizes), sum(media for _, media in sizes)
