"""Agent files as workers: Markdown with a head of `name`, `description`, `model`, as coding agents keep them.

The head is the part of YAML that such files use: `key: value`, quoted values, and texts that go on in indented lines
(`|` keeps its lines, `>` and plain ones are folded). The description becomes the worker's card. What follows the head
is the agent's own prompt; a worker has none, so only its length is told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pointsman.errors import UserError

_FENCE = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_KEY = re.compile(r"([A-Za-z][\w-]*):(?:[ \t]+(.*))?$")
_BLOCK = re.compile(r"[|>][+-]?$")
_UNFIT = re.compile(r"[^A-Za-z0-9._:/-]+")
MAX_CARD = 4_000


@dataclass(frozen=True)
class Agent:
    """`model` None: the file leaves it open. `prompt_chars` of the text behind the head."""

    name: str
    description: str
    model: str | None
    prompt_chars: int


def read_agents(folder: Path) -> list[Agent]:
    """Every `*.md` below `folder` that has such a head, by name. UserError where there is none, or two share a name."""
    files = sorted(folder.rglob("*.md")) if folder.is_dir() else [folder] if folder.is_file() else []
    agents: dict[str, Agent] = {}
    for file in files:
        agent = agent_of(file.read_text(encoding="utf-8", errors="replace"), file.stem)
        if agent is None:
            continue
        if agent.name in agents:
            raise UserError(f"{file}: a second agent is called {agent.name!r}; give each a name of its own")
        agents[agent.name] = agent
    if not agents:
        raise UserError(f"{folder}: expected Markdown files that begin with a head of name and description")
    return [agents[name] for name in sorted(agents)]


def agent_of(text: str, stem: str) -> Agent | None:
    """None where the text has no head, or no description in it. Without a name the file's own is taken."""
    found = _FENCE.match(text)
    if found is None:
        return None
    head = _head(found[1].splitlines())
    if not head.get("description"):
        return None
    name = _UNFIT.sub("-", head.get("name") or stem).strip("-._:/")[:100]
    model = head.get("model") or None
    described = head["description"][:MAX_CARD]
    return Agent(name or "agent", described, None if model == "inherit" else model, len(text[found.end() :].strip()))


def workers_toml(
    agents: Sequence[Agent], models: Mapping[str, str], default: str | None, base_url: str, api_key_env: str | None
) -> str:
    """The agents as `[[workers]]`. `models` maps what the files call a model (`haiku`) to the provider's id.

    UserError where an agent has no model and there is no `default`.
    """
    blocks = []
    for agent in agents:
        model = models.get(agent.model, agent.model) if agent.model is not None else default
        if model is None:
            raise UserError(f"agent {agent.name}: its file names no model; say which with --default-model")
        lines = ["[[workers]]"]
        if agent.prompt_chars:
            lines.append(f"# Its file's own prompt ({agent.prompt_chars:,} characters) is not part of a worker.")
        lines += [
            f"name = {json.dumps(agent.name)}",
            f"description = {json.dumps(agent.description)}",
            f"model = {json.dumps(model)}",
            f"base_url = {json.dumps(base_url)}",
        ]
        if api_key_env is not None:
            lines.append(f"api_key_env = {json.dumps(api_key_env)}")
        lines.append('capabilities = ["tools"]')
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def _head(lines: Sequence[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    place = 0
    while place < len(lines):
        found = _KEY.match(lines[place])
        place += 1
        if found is None:
            continue
        more: list[str] = []
        while place < len(lines) and (not lines[place].strip() or lines[place][0] in " \t"):
            more.append(lines[place].strip())
            place += 1
        values[found[1].lower()] = _value((found[2] or "").strip(), more)
    return values


def _value(first: str, more: Sequence[str]) -> str:
    if _BLOCK.match(first):
        return ("\n" if first[0] == "|" else " ").join(more).strip()
    whole = " ".join([first, *more]).strip()
    if len(whole) > 1 and whole[0] == whole[-1] == "'":
        return whole[1:-1].replace("''", "'")
    if len(whole) > 1 and whole[0] == whole[-1] == '"':
        try:
            return str(json.loads(whole, strict=False))
        except ValueError:
            return whole[1:-1]
    return re.sub(r"[ \t]+#.*$", "", whole)
