"""Tools and the choice among them: the Responses API's flat form as chat's nested one.

Free-form (`custom`) tools become functions with one text argument, since few workers have them.
Tools that the provider of the API would run itself are refused: nobody here would run them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.gateway.surfaces.responses_checks import Fields, decoded, objects, optional, required_text, wrong
from harness.gateway.surfaces.responses_input import CUSTOM_ARGUMENT
from pointsman.errors import RequestError

_MODES = ("none", "auto", "required")


@dataclass(frozen=True, slots=True)
class ChatTools:
    """`tools` and `choice` are for a chat request; `choice` is None where nothing need be said."""

    tools: list[dict[str, Any]]
    choice: str | dict[str, Any] | None
    custom: frozenset[str]


def chat_tools(fields: Fields) -> ChatTools:
    """Raises a 400 that names the tool."""
    tools: dict[str, dict[str, Any]] = {}
    custom = set()
    for index, tool in enumerate(objects(fields, "tools")):
        path = f"tools[{index}]."
        kind = decoded(tool, "type", path)
        if kind not in ("function", "custom"):
            raise _hosted(kind, f"{path}type")
        name = required_text(decoded(tool, "name", path), f"{path}name")
        if kind == "custom":
            custom.add(name)
        tools[name] = _custom(tool, name, path) if kind == "custom" else _function(tool, name, path)
    choice = _choice(decoded(fields, "tool_choice"), tools)
    return ChatTools(list(tools.values()), choice, frozenset(custom))


def _function(tool: Fields, name: str, path: str) -> dict[str, Any]:
    optional(tool, "description", "text", path)
    optional(tool, "parameters", "object", path)
    optional(tool, "strict", "flag", path)
    function: dict[str, Any] = {"name": name}
    for field in ("description", "parameters", "strict"):
        raw = tool.get(field)
        if raw is not None and bytes(raw) != b"null":
            function[field] = raw
    return {"type": "function", "function": function}


def _custom(tool: Fields, name: str, path: str) -> dict[str, Any]:
    description = optional(tool, "description", "text", path) or ""
    form = optional(tool, "format", "object", path) or {}
    if form.get("type") == "grammar":
        definition = required_text(form.get("definition"), f"{path}format.definition")
        syntax = required_text(form.get("syntax"), f"{path}format.syntax")
        description += f"\n\nThe {CUSTOM_ARGUMENT} must follow this {syntax} grammar:\n{definition}"
    argument = {"type": "string", "description": "The whole input of the tool, as plain text."}
    parameters = {
        "type": "object",
        "properties": {CUSTOM_ARGUMENT: argument},
        "required": [CUSTOM_ARGUMENT],
        "additionalProperties": False,
    }
    function = {"name": name, "description": description.strip(), "parameters": parameters}
    return {"type": "function", "function": function}


def _choice(choice: Any, tools: dict[str, dict[str, Any]]) -> str | dict[str, Any] | None:
    """Also takes from `tools` what a choice of allowed ones leaves out."""
    if choice is None:
        return None
    if choice in _MODES:
        if choice == "required" and not tools:
            raise RequestError("tool_choice: a tool is required and there are none in tools", param="tool_choice")
        return choice if tools else None  # chat APIs refuse the field without tools
    kind = choice.get("type") if isinstance(choice, dict) else None
    if kind in ("function", "custom"):
        name = _known(choice.get("name"), tools, "tool_choice.name")
        return {"type": "function", "function": {"name": name}}
    if kind == "allowed_tools":
        return _allowed(choice, tools)
    raise wrong("tool_choice", "none, auto, required, or an object of type function, custom or allowed_tools")


def _allowed(choice: dict[str, Any], tools: dict[str, dict[str, Any]]) -> str:
    mode, listed = choice.get("mode"), choice.get("tools")
    if mode not in ("auto", "required"):
        raise wrong("tool_choice.mode", "auto or required")
    if not isinstance(listed, list) or not listed:
        raise wrong("tool_choice.tools", "a list with at least one tool")
    names = set()
    for index, tool in enumerate(listed):
        path = f"tool_choice.tools[{index}]"
        if not isinstance(tool, dict):
            raise wrong(path, "an object")
        names.add(_known(tool.get("name"), tools, f"{path}.name"))
    for name in tools.keys() - names:
        del tools[name]
    return str(mode)


def _known(name: Any, tools: dict[str, dict[str, Any]], path: str) -> str:
    if not isinstance(name, str) or name not in tools:
        raise wrong(path, "the name of one of tools")
    return name


def _hosted(kind: Any, path: str) -> RequestError:
    if not isinstance(kind, str):
        return wrong(path, '"function" or "custom"')
    return RequestError(
        f"{path}: {kind[:60]!r} is a tool that is not served here, only function and custom tools are; leave it "
        "out, or offer a function that does the same",
        param=path,
        code="unsupported_tool",
    )
