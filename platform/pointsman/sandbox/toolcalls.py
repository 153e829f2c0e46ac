"""Simulated tool calls: syntactically right, arguments filled from the tool's schema and the prompt."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

MAX_DEPTH = 6


def calls_for(body: Mapping[str, Any], prompt: str, salt: str) -> list[dict[str, Any]]:
    """The calls that the request forces or its prompt asks for by a tool's name; empty for none."""
    tools = [tool["function"] for tool in body.get("tools") or [] if _is_function(tool)]
    wanted = _wanted(tools, body.get("tool_choice"), prompt)
    if body.get("parallel_tool_calls") is False:
        wanted = wanted[:1]
    return [_call(function, prompt, f"{salt}/{index}") for index, function in enumerate(wanted)]


def _is_function(tool: Any) -> bool:
    return isinstance(tool, dict) and isinstance(tool.get("function"), dict) and "name" in tool["function"]


def _wanted(tools: list[dict[str, Any]], choice: Any, prompt: str) -> list[dict[str, Any]]:
    if choice == "none" or not tools:
        return []
    if isinstance(choice, dict):
        name = (choice.get("function") or {}).get("name")
        return [tool for tool in tools if tool["name"] == name][:1]
    asked = prompt.casefold()
    named = [t for t in tools if t["name"].casefold() in asked or t["name"].casefold().replace("_", " ") in asked]
    return named or (tools[:1] if choice == "required" else [])


def _call(function: Mapping[str, Any], prompt: str, salt: str) -> dict[str, Any]:
    schema = function.get("parameters")
    arguments = _filled(schema if isinstance(schema, dict) else {"type": "object"}, prompt, 0)
    digest = sha256(f"{salt}/{function['name']}/{prompt}".encode("utf-8", "surrogatepass")).hexdigest()
    return {
        "id": f"call_{digest[:24]}",
        "type": "function",
        "function": {"name": function["name"], "arguments": json.dumps(arguments)},
    }


def _filled(schema: Mapping[str, Any], prompt: str, depth: int) -> Any:
    """A value that fits a JSON schema, taken from the prompt where something there fits."""
    if schema.get("enum"):
        return next((v for v in schema["enum"] if str(v).casefold() in prompt.casefold()), schema["enum"][0])
    if "default" in schema:
        return schema["default"]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object" or (kind is None and "properties" in schema):
        properties = schema.get("properties") or {}
        return {} if depth >= MAX_DEPTH else {k: _filled(v, prompt, depth + 1) for k, v in properties.items()}
    if kind == "array":
        items = schema.get("items")
        return [_filled(items, prompt, depth + 1)] if isinstance(items, dict) and depth < MAX_DEPTH else []
    if kind in ("integer", "number"):
        number = re.search(r"-?\d{1,15}", prompt)
        return int(number[0]) if number else 1
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    return _noun(prompt)


def _noun(prompt: str) -> str:
    """The first quoted text, else the last capitalised word, else "example"."""
    if quoted := re.search(r'"([^"]{1,200})"', prompt):
        return quoted[1]
    names = re.findall(r"(?<![.!?] )(?<!^)\b[A-Z][a-z]{2,30}\b", prompt[:2_000])
    return str(names[-1]) if names else "example"
