"""Compiles the router program to a plain template (`harness.routing.template`) with DSPy's own adapter.

The adapter formats the program with a sentinel in place of each value; the text is cut there. Run
`python -m harness.optimise.compile` to write the default template anew, with `--check` to compare
only: exit status 1 and the difference where the one that ships is not what this dspy makes.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any

import dspy
from rich.console import Console

from harness.optimise.program import RouterProgram, default_instructions
from harness.routing.template import FORMAT, INPUTS, MODES, SLOTS, Mode, template_of
from pointsman.errors import UserError

DEFAULT_FILE = Path(__file__).parent.parent / "routing" / "templates" / "default.json"
Demo = Mapping[str, str]
_SENTINELS = {name: f"@pointsman-slot-{name}@" for name in SLOTS}
_CUT = re.compile("(" + "|".join(_SENTINELS.values()) + ")")
_SLOT_OF = {sentinel: name for name, sentinel in _SENTINELS.items()}


def compile_programs(programs: Sequence[RouterProgram]) -> dict[str, Any]:
    """The template of one program per mode, which must share their instructions."""
    texts = {program.route.signature.instructions for program in programs}
    if len(texts) != 1 or sorted(program.mode for program in programs) != sorted(MODES):
        raise UserError(f"expected one program per mode ({', '.join(MODES)}) with the same instructions")
    raw = {
        "format": FORMAT,
        "dspy": dspy.__version__,
        "adapter": "ChatAdapter",
        "instructions": texts.pop(),
        "modes": {program.mode: _messages(program) for program in programs},
    }
    template_of(raw, "compiled template")
    return raw


def compile_default(
    instructions: str | None = None, demos: Mapping[Mode, Sequence[Demo]] | None = None
) -> dict[str, Any]:
    """The template of these instructions (the hand-written ones if None) and demos."""
    text = default_instructions() if instructions is None else instructions
    return compile_programs([RouterProgram(mode, text, (demos or {}).get(mode, ())) for mode in MODES])


def as_text(template: Mapping[str, Any]) -> str:
    """A template as the file that ships: stable and readable."""
    return json.dumps(template, indent=2, ensure_ascii=False) + "\n"


def difference(shipped: str, compiled: str) -> str:
    """A unified diff of two templates' texts, "" where they say the same but for dspy's version.

    A release of dspy that formats alike must not fail every clone; one that does not is shown.
    """
    if _without_version(shipped) == _without_version(compiled):
        return ""
    lines = unified_diff(shipped.splitlines(), compiled.splitlines(), "shipped", "compiled", lineterm="")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None, console: Console | None = None) -> int:
    """The command: writes the default template, or with `--check` compares it."""
    parser = argparse.ArgumentParser(prog="python -m harness.optimise.compile", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 where they differ")
    parser.add_argument("--file", type=Path, default=DEFAULT_FILE, help="the template (default: the one that ships)")
    options = parser.parse_args(argv)
    out = console or Console()
    text = as_text(compile_default())
    if not options.check:
        options.file.write_text(text, encoding="utf-8")
        out.print(f"wrote {options.file.name}", markup=False)
        return 0
    changed = difference(options.file.read_text(encoding="utf-8") if options.file.exists() else "", text)
    out.print(changed or f"{options.file.name} is what dspy {dspy.__version__} makes", markup=False, soft_wrap=True)
    return 1 if changed else 0


def _messages(program: RouterProgram) -> list[dict[str, Any]]:
    signature = program.route.signature.with_instructions(_SENTINELS["instructions"])
    values = {name: _SENTINELS[name] for name in INPUTS}
    messages = dspy.ChatAdapter().format(signature, program.route.demos, values)
    parts = [{"role": message["role"], "parts": _cut(message["content"], program.mode)} for message in messages]
    for name, sentinel in _SENTINELS.items():
        count = sum(str(message["content"]).count(sentinel) for message in messages)
        if count != 1:
            raise UserError(f"{program.mode}: the place of `{name}` stands {count} times in the prompt, expected once")
    return parts


def _cut(content: Any, mode: Mode) -> list[str | dict[str, str]]:
    # DSPy turns its markers of images and the like, written in a demo, into content that is no text.
    if not isinstance(content, str):
        raise UserError(f"{mode}: a demo holds DSPy's marker of a custom type, expected plain text")
    pieces = [piece for piece in _CUT.split(content) if piece]
    return [{"slot": _SLOT_OF[piece]} if piece in _SLOT_OF else piece for piece in pieces]


def _without_version(text: str) -> Any:
    try:
        raw = json.loads(text)
    except ValueError:
        return text
    return {key: value for key, value in raw.items() if key != "dspy"} if isinstance(raw, dict) else raw


if __name__ == "__main__":
    sys.exit(main())
