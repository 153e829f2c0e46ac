"""A compiled routing prompt: plain JSON, content-hashed, filled by joining parts.

A template is what DSPy's adapter makes of the router program (`harness.optimise.compile`), cut at the
places where values go. Filling joins strings; nothing in a value is ever interpreted. The bytes equal
those of DSPy's own adapter for the same values, instructions included.

    {"format": 1, "dspy": "3.4.1", "adapter": "ChatAdapter", "instructions": "...",
     "modes": {"option": [{"role": "system", "parts": ["text", {"slot": "instructions"}]}, ...],
               "scores": [...]}}
"""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args

from pointsman.errors import UserError
from pointsman.hashing import content_hash

FORMAT = 1
Mode = Literal["option", "scores"]
MODES: tuple[Mode, ...] = get_args(Mode)
INPUTS = ("request", "context", "workers")
SLOTS = ("instructions", *INPUTS)
_INDENT = "\n" + " " * 8  # DSPy's ChatAdapter indents every line of the instructions


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of one value."""

    name: str


@dataclass(frozen=True, slots=True)
class TemplateMessage:
    """One message of the prompt: a role and the parts of its content."""

    role: str
    parts: tuple[str | Slot, ...]


@dataclass(frozen=True)
class Template:
    """A compiled routing prompt, in both forms of answer: a letter (`option`) or points (`scores`)."""

    instructions: str
    modes: Mapping[Mode, tuple[TemplateMessage, ...]]
    hash: str


def default_template() -> Template:
    """The template that ships with Pointsman."""
    file = resources.files("harness.routing").joinpath("templates/default.json")
    return read_template(file.read_text(encoding="utf-8"), "default.json")


def load_template(file: Path) -> Template:
    """The template in `file`; raises `UserError` where it is none."""
    return read_template(file.read_text(encoding="utf-8"), file.name)


def read_template(text: str, name: str = "template") -> Template:
    """The template that `text` (JSON) holds; `name` is used by error messages."""
    try:
        raw = json.loads(text)
    except ValueError as error:
        raise UserError(f"{name}: not JSON: {error}") from None
    return template_of(raw, name)


def template_of(raw: Any, name: str = "template") -> Template:
    """The template in decoded JSON; raises `UserError` naming what is wrong."""
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise UserError(f"{name}: expected a template of format {FORMAT}")
    instructions, modes = raw.get("instructions"), raw.get("modes")
    if not isinstance(instructions, str) or not isinstance(modes, dict) or set(modes) != set(MODES):
        raise UserError(f"{name}: expected instructions, and modes {', '.join(MODES)}")
    rendered_instructions(instructions)
    return Template(
        instructions, {mode: _messages(modes[mode], f"{name}: {mode}") for mode in MODES}, content_hash(raw)
    )


def fill(
    template: Template, mode: Mode, slots: Mapping[str, str], instructions: str | None = None
) -> list[dict[str, str]]:
    """The messages of `template` with `slots` (`request`, `context`, `workers`) in their places.

    `instructions` stand in place of the template's own, laid out as DSPy lays them out.
    """
    text = template.instructions if instructions is None else instructions
    values = {**slots, "instructions": rendered_instructions(text)}
    return [
        {"role": message.role, "content": "".join(_value(part, values) for part in message.parts)}
        for message in template.modes[mode]
    ]


def rendered_instructions(text: str) -> str:
    """Instructions as DSPy writes them into the system message: cleaned, then indented line by line."""
    lines = textwrap.dedent(inspect.cleandoc(text)).splitlines()
    if not any(line.strip() for line in lines):
        raise UserError("instructions: expected some text, got none")
    return _INDENT.join(lines)


def _value(part: str | Slot, values: Mapping[str, str]) -> str:
    return part if isinstance(part, str) else values[part.name]


def _messages(raw: Any, place: str) -> tuple[TemplateMessage, ...]:
    if not isinstance(raw, list):
        raise UserError(f"{place}: expected a list of messages")
    messages = tuple(_message(item, place) for item in raw)
    used = sorted(part.name for message in messages for part in message.parts if isinstance(part, Slot))
    if used != sorted(SLOTS):
        raise UserError(f"{place}: expected each slot of {', '.join(SLOTS)} once, got {', '.join(used) or 'none'}")
    return messages


def _message(raw: Any, place: str) -> TemplateMessage:
    match raw:
        case {"role": "system" | "user" | "assistant" as role, "parts": [*parts]}:
            return TemplateMessage(role, tuple(_part(part, place) for part in parts))
    raise UserError(f"{place}: expected messages with a role and parts")


def _part(raw: Any, place: str) -> str | Slot:
    match raw:
        case str():
            return raw
        case {"slot": str(name)}:
            return Slot(name)
    raise UserError(f"{place}: expected a text or a slot, got {raw!r}")
