"""Reads a plan from what an LLM wrote, whatever it is wrapped in; says what is wrong where it cannot.

In order: thinking blocks are dropped; of each label (`workers`, `subtasks`, `access`, behind it `=` or `:`) the last
list that can be read counts, so that reasoning before the plan does no harm. A list is JSON or Python's literals,
over as many lines as it likes. Workers are option letters or names; a bare number names nobody.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.engine.plan.grammar import MAX_STEPS, Access, Plan, Step, problems_of
from harness.routing.names import Offered
from harness.routing.parse import visible_text
from pointsman.words import ParseStatus

MAX_LIST = 20_000
MAX_ITEMS = 200
_LABELS = {
    "workers": r"workers?|models?|agents?",
    "subtasks": r"sub[ _-]?tasks?",
    "access": r"access(?:[ _-]?lists?)?",
}
_BEFORE = r"(?:^|[\s{,*_`\"'])"
_HEADS = {
    label: re.compile(rf"{_BEFORE}(?:{words})[\"'`*_ ]*[=:][\s*`]*(?=\[)", re.IGNORECASE | re.MULTILINE)
    for label, words in _LABELS.items()
}


@dataclass(frozen=True)
class Parsed:
    """A plan that may run, or what was wrong. `problems` are written for whoever wrote the plan."""

    plan: Plan | None
    problems: tuple[str, ...] = ()
    status: ParseStatus = "ok"


def parse(text: str | None, options: Mapping[str, str], *, max_steps: int = MAX_STEPS, empty: bool = False) -> Parsed:
    """The plan in `text`, its workers among `options` (letter → name), checked whole."""
    visible = visible_text(text)
    if not visible:
        return Parsed(None, ("expected a plan, got no text",), "empty")
    lists = {label: _last_list(visible, head) for label, head in _HEADS.items()}
    if missing := [label for label, found in lists.items() if found is None]:
        return Parsed(None, tuple(f"expected a list behind `{label} =`, found none" for label in missing), "unknown")
    workers, subtasks, access = (lists[label] or [] for label in _LABELS)
    lengths = {len(workers), len(subtasks), len(access)}
    if len(lengths) > 1:
        told = f"workers has {len(workers)}, subtasks {len(subtasks)}, access {len(access)}"
        return Parsed(None, (f"expected three lists of one length, got: {told}",), "unknown")
    return _checked(workers, subtasks, access, options, max_steps, empty, _is_plain(visible))


def _checked(
    workers: Sequence[Any],
    subtasks: Sequence[Any],
    access: Sequence[Any],
    options: Mapping[str, str],
    max_steps: int,
    empty: bool,
    plain: bool,
) -> Parsed:
    if len(workers) > max_steps:
        return Parsed(None, (f"expected at most {max_steps} steps, got {len(workers)}",), "unknown")
    offered, steps, problems = Offered(options), [], []
    for number, (worker, subtask, seen) in enumerate(zip(workers, subtasks, access, strict=True), 1):
        name, wrong = _worker(worker, offered, number)
        reads, unread = _access(seen, number)
        problems += [*wrong, *unread]
        if not isinstance(subtask, str):
            problems.append(f"step {number}: expected a subtask in words, got {subtask!r}")
        steps.append(Step(name, str(subtask), reads))
    plan = Plan(tuple(steps))
    problems = problems or problems_of(plan, list(options.values()), max_steps=max_steps, empty=empty)
    if problems:
        return Parsed(None, tuple(problems), "unknown")
    return Parsed(plan, (), "ok" if plain else "repaired")


def _worker(value: Any, offered: Offered, number: int) -> tuple[str | None, list[str]]:
    known = ", ".join(offered.options)
    if isinstance(value, str):
        named = offered.resolve(value)
        if len(named) == 1:
            return next(iter(named)), []
    return None, [f"step {number}: {value!r} is no worker here, expected one of the options {known}"]


def _access(value: Any, number: int) -> tuple[Access, list[str]]:
    """`none`, `all`, a position or a list of positions."""
    if value is None or value in ([], ()):
        return (), []
    if isinstance(value, str):
        word = value.strip().lower().strip("[]")
        if word in ("none", "", "no"):
            return (), []
        if word == "all":
            return "all", []
        value = [part.strip() for part in word.split(",")]
    if isinstance(value, list | tuple) and len(value) == 1 and str(value[0]).lower() == "all":
        return "all", []
    positions = [_position(item) for item in (value if isinstance(value, list | tuple) else [value])]
    if None in positions:
        return (), [f"step {number}: expected the access none, all or a list of earlier steps, got {value!r}"]
    return tuple(position for position in positions if position is not None), []


def _position(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = re.fullmatch(r"(?:step\s*)?(-?\d{1,4})", str(value).strip().lower())
    return int(found[1]) if found else None


def _last_list(text: str, head: re.Pattern[str]) -> list[Any] | None:
    """The last list behind a label that can be read."""
    for match in reversed(list(head.finditer(text))):
        span = _balanced(text, match.end())
        value = _literal(span) if span is not None else None
        if isinstance(value, list | tuple):
            return list(value)[: MAX_ITEMS + 1]
    return None


def _balanced(text: str, start: int) -> str | None:
    """From the bracket at `start` to the one that closes it; brackets in quoted texts do not count."""
    depth, quote, escaped = 0, "", False
    for position in range(start, min(len(text), start + MAX_LIST)):
        character = text[position]
        if quote:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == quote:
                quote = ""
        elif character == '"' or (character == "'" and _opens(text, position)):
            quote = character
        elif character == "[":
            depth += 1
        elif character == "]":
            depth -= 1
            if depth == 0:
                return text[start : position + 1]
    return None


def _opens(text: str, position: int) -> bool:
    """Whether an apostrophe begins a text: in a list it does, within a word it does not."""
    return text[:position].rstrip()[-1:] in ("[", ",", "(")


def _literal(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _is_plain(text: str) -> bool:
    """Whether the reply is the plan and, at most, the prompt's own markers around it."""
    inner = re.sub(r"\[\[ ## (?:plan|completed) ## \]\]", "", text).strip()
    lines = [line for line in inner.splitlines() if line.strip()]
    return len(lines) == 3 and all(re.match(rf"{label} = \[", line) for label, line in zip(_LABELS, lines, strict=True))
