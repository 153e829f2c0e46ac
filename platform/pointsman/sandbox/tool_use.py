"""A simulated worker with a team's tools: it delegates parts as a lead, and hands over what others do better.

It sees the tools' descriptions, its own card where it is told it, and what came back. A lead gives away all parts of a
request but the last, checks what comes back as well as it can check, and does itself what it holds to be wrong.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from pointsman.sandbox import prompts
from pointsman.sandbox.instructions import Instructions, answer_in
from pointsman.sandbox.overlap import overlaps
from pointsman.sandbox.parts import Parts, about, split
from pointsman.sandbox.team_program import TeamProgram

_TRANSFER = "transfer_to_"
Message = dict[str, Any]


def calls(
    body: Mapping[str, Any], messages: list[Message], told: Instructions, team: TeamProgram
) -> list[dict[str, Any]]:
    """The tool calls that this reply consists of; none where it is to answer."""
    tools = {tool["function"]["name"]: tool["function"] for tool in body.get("tools") or [] if _named(tool)}
    if body.get("tool_choice") == "none":
        return []
    if "delegate" in tools:
        return _lead(messages, told, team)
    fresh = messages[-1].get("role") != "tool"
    offered = {name: tool for name, tool in tools.items() if name.startswith(_TRANSFER)}
    return _handed_over(offered, told, team) if fresh and offered and told.own else []


def led(messages: list[Message], told: Instructions, team: TeamProgram) -> str | None:
    """A lead's answer from what came back and what it does itself; None where it has delegated nothing."""
    found = _results(messages)
    if not found:
        return None
    parts = split(told.request)
    answers: list[str] = []
    for number, part in enumerate(parts.parts):
        asked = about(part, answers[-1]) if parts.chained and answers else part
        given = answer_in(found[number]) if number < len(found) and team.holds(part, found[number]) else None
        answers.append(given or team.part(asked) or "unknown")
    return answers[-1] if parts.chained else "; ".join(answers)


def _lead(messages: list[Message], told: Instructions, team: TeamProgram) -> list[dict[str, Any]]:
    parts = split(told.request)
    if not parts.several:
        return []
    found, asked = _results(messages), _called(messages)
    if not asked:
        tasks = [part for part in parts.parts[:-1] if team.part(part) is not None]
        return [_call(team, "delegate", {"task": task}) for task in tasks]
    if "reject" not in asked and not all(map(team.holds, parts.parts, found)):
        return [_call(team, "reject", {"reason": "My own work comes out otherwise."})]
    return []


def _handed_over(
    offered: Mapping[str, Mapping[str, Any]], told: Instructions, team: TeamProgram
) -> list[dict[str, Any]]:
    """To whoever's description has clearly more to do with the request than one's own."""
    cards = {name: str(tool.get("description", "")).partition(": ")[2] for name, tool in offered.items()}
    own, *others = overlaps(_main(split(told.request)), [told.own or "", *cards.values()])
    best = max(others)
    if best <= own:
        return []
    name = list(cards)[others.index(best)]
    return [_call(team, name, {"reason": "This is more in your line than in mine."})]


def _main(parts: Parts) -> str:
    return "\n".join(parts.parts)


def _called(messages: list[Message]) -> list[str]:
    """The tools that were called since the person spoke."""
    return [call["function"]["name"] for message in _since(messages) for call in message.get("tool_calls") or ()]


def _results(messages: list[Message]) -> list[str]:
    """What came back for each delegation since the person spoke, in their order."""
    names = _called(messages)
    texts = [prompts.text_of(message) for message in _since(messages) if message.get("role") == "tool"]
    return [text for name, text in zip(names, texts, strict=False) if name == "delegate"]


def _since(messages: list[Message]) -> list[Message]:
    last = max((at for at, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    return messages[last + 1 :]


def _named(tool: Any) -> bool:
    return isinstance(tool, dict) and isinstance(tool.get("function"), dict) and "name" in tool["function"]


def _call(team: TeamProgram, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    said = json.dumps(arguments)
    digest = sha256(f"{team.name}/{team.salt}/{name}/{said}".encode("utf-8", "surrogatepass")).hexdigest()
    return {
        "id": f"call_{digest[:24]}",
        "type": "function",
        "function": {"name": name, "arguments": said},
    }
