"""`POST /v1/responses`: a request as the equivalent chat-completions request.

Nothing is kept between requests, so whatever points at an earlier answer is refused. Fields that both
APIs have go on as they came, and so do fields that neither knows: a worker may.
"""

from __future__ import annotations

from typing import Any

import msgspec

from harness.gateway.bounds import check_json
from harness.gateway.guard import refuse_addresses
from harness.gateway.surfaces.responses_checks import (
    Fields,
    Kind,
    decoded,
    optional,
    read_fields,
    required_text,
    wrong,
)
from harness.gateway.surfaces.responses_context import ChatBody, ResponsesContext
from harness.gateway.surfaces.responses_input import chat_messages
from harness.gateway.surfaces.responses_tools import ChatTools, chat_tools
from pointsman.errors import RequestError

LOGPROBS = "message.output_text.logprobs"

_KINDS: dict[str, Kind] = {
    "background": "flag",
    "include": "list",
    "instructions": "text",
    "max_output_tokens": "count",
    "max_tool_calls": "count",
    "metadata": "object",
    "parallel_tool_calls": "flag",
    "prompt_cache_key": "text",
    "reasoning": "object",
    "safety_identifier": "text",
    "service_tier": "text",
    "store": "flag",
    "stream": "flag",
    "temperature": "number",
    "text": "object",
    "top_logprobs": "count",
    "top_p": "number",
    "truncation": "text",
    "user": "text",
}
# Written anew for chat, or about what does not exist here.
_OWN = frozenset(
    {
        "background",
        "background_options",
        "client_metadata",
        "context_management",
        "conversation",
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "parallel_tool_calls",
        "previous_response_id",
        "prompt",
        "reasoning",
        "stream_options",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "truncation",
    }
)
_STATE = {
    "previous_response_id": "answers are not kept here for later turns; give the previous turns inline in input",
    "conversation": "conversations are not kept here; give the previous turns inline in input",
    "prompt": "prompt templates are not kept here; give instructions and input",
}
_MOVED = {
    "function_call": "tool_choice",
    "functions": "tools",
    "logprobs": "include",
    "max_completion_tokens": "max_output_tokens",
    "max_tokens": "max_output_tokens",
    "messages": "input",
    "n": None,
    "reasoning_effort": "reasoning.effort",
    "response_format": "text.format",
    "verbosity": "text.verbosity",
}
_DEFAULTS: dict[str, Any] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": 1.0,
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "user": None,
}


def to_chat(body: bytes) -> ChatBody:
    """Raises a `RequestError` (400) that names the parameter."""
    check_json(body)
    fields = {name: raw for name, raw in read_fields(body).items() if bytes(raw) != b"null"}
    # The schema in `text` is the caller's own, and nothing of `text` goes on but what is known of it.
    refuse_addresses({name: raw for name, raw in fields.items() if name != "text"})
    _refuse_unserved(fields)
    given = {name: optional(fields, name, kind) for name, kind in _KINDS.items()}
    model = required_text(decoded(fields, "model"), "model")
    tools = chat_tools(fields)
    chat: dict[str, Any] = {name: raw for name, raw in fields.items() if name not in _OWN}
    chat["messages"] = chat_messages(decoded(fields, "input"), given["instructions"])
    _add_tools(chat, tools, given["parallel_tool_calls"])
    _add_text(chat, fields)
    _add_logprobs(chat, given)
    if given["max_output_tokens"] is not None:
        chat["max_completion_tokens"] = given["max_output_tokens"]
    reasoning = given["reasoning"] or {}
    if (effort := reasoning.get("effort")) is not None:
        chat["reasoning_effort"] = required_text(effort, "reasoning.effort")
    if given["stream"]:
        chat["stream_options"] = {"include_usage": True}
    context = ResponsesContext(
        model=model,
        stream=bool(given["stream"]),
        echo=_echo(fields, given),
        custom_tools=tools.custom,
        summary=bool(reasoning.get("summary") or reasoning.get("generate_summary")),
    )
    return ChatBody(msgspec.json.encode(chat), context)


def _refuse_unserved(fields: Fields) -> None:
    for name, reason in _STATE.items():
        if name in fields:
            raise RequestError(f"{name}: {reason}", param=name, code="unsupported_parameter")
    if decoded(fields, "background") is True:
        raise RequestError(
            "background: answers are not made in the background here; leave it out, and use stream for long ones",
            param="background",
            code="unsupported_parameter",
        )
    for name, place in _MOVED.items():
        if name in fields:
            reason = f"give {place} instead" if place else "not part of the Responses API"
            raise RequestError(
                f"{name}: a parameter of chat completions; {reason}", param=name, code="unsupported_parameter"
            )


def _add_tools(chat: dict[str, Any], tools: ChatTools, parallel: bool | None) -> None:
    if not tools.tools:
        return
    chat["tools"] = tools.tools
    if tools.choice is not None:
        chat["tool_choice"] = tools.choice
    if parallel is not None:
        chat["parallel_tool_calls"] = parallel


def _add_text(chat: dict[str, Any], fields: Fields) -> None:
    """`text.format` and `text.verbosity`; the schema keeps its bytes."""
    text = read_fields(fields["text"]) if "text" in fields else {}
    if (verbosity := optional(text, "verbosity", "text", "text.")) is not None:
        chat["verbosity"] = verbosity
    if optional(text, "format", "object", "text.") is None:
        return
    form = read_fields(text["format"])
    kind = decoded(form, "type", "text.format.")
    if kind == "json_object":
        chat["response_format"] = {"type": kind}
    elif kind == "json_schema":
        chat["response_format"] = {"type": kind, kind: _schema(form)}
    elif kind != "text":
        raise wrong("text.format.type", "text, json_object or json_schema")


def _schema(form: Fields) -> Fields:
    path = "text.format."
    required_text(decoded(form, "name", path), f"{path}name")
    if optional(form, "schema", "object", path) is None:
        raise wrong(f"{path}schema", "an object")
    optional(form, "strict", "flag", path)
    optional(form, "description", "text", path)
    names = ("name", "description", "schema", "strict")
    return {name: form[name] for name in names if name in form and bytes(form[name]) != b"null"}


def _add_logprobs(chat: dict[str, Any], given: dict[str, Any]) -> None:
    if given["top_logprobs"]:
        chat["top_logprobs"] = given["top_logprobs"]
    if given["top_logprobs"] or LOGPROBS in (given["include"] or ()):
        chat["logprobs"] = True


def _echo(fields: Fields, given: dict[str, Any]) -> dict[str, Any]:
    """What a Response repeats of its request: as it was given, else the API's default."""
    echo = {name: fields.get(name, default) for name, default in _DEFAULTS.items()}
    metadata = given["metadata"] or {}
    echo["metadata"] = {name: value for name, value in metadata.items() if name != "pointsman"}
    echo["reasoning"] = {"effort": None, "summary": None, **(given["reasoning"] or {})}
    echo["text"] = {"format": {"type": "text"}, **(given["text"] or {})}
    echo["truncation"] = "disabled"  # whatever was asked: nothing is ever cut from a conversation here
    return echo
