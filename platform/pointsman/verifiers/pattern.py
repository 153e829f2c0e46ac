"""A regular expression over the final answer, which cannot hang.

Python's engine backtracks, so both sides are bounded: the answer is cut to 200 characters, and a pattern
may hold at most three repetitions that give back characters (possessive ones, `\\d++`, are free), none of
them around a group that itself repeats or alternates. That bounds the work at some 10^8 small steps.
Options: `pattern`, `full` (true: all of the answer must match), `case` (true: letters' case counts).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pointsman.errors import UserError
from pointsman.verifiers import spec as read
from pointsman.verifiers.extract import final_answer

MAX_ANSWER = 200
MAX_PATTERN = 400
MAX_REPEATS = 3
MAX_BRANCHES = 8

_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?[^)]{0,12}?[:=!>]|[*+?|()]|\{\d*,?\d*\}|.", re.DOTALL)


def regex(spec: Mapping[str, Any], answer: str) -> float:
    read.only(spec, ("pattern", "full", "case"))
    pattern = read.text(spec, "pattern")
    full, case = read.flag(spec, "full", False), read.flag(spec, "case", False)
    _refuse_slow(pattern)
    try:
        compiled = re.compile(pattern, 0 if case else re.IGNORECASE)
    except re.error as error:
        raise UserError(f"verifier regex: pattern: expected a regular expression, {error}") from None
    final = final_answer(answer)[:MAX_ANSWER]
    return float((compiled.fullmatch(final) if full else compiled.search(final)) is not None)


def _refuse_slow(pattern: str) -> None:
    if len(pattern) > MAX_PATTERN:
        raise UserError(f"verifier regex: pattern: expected at most {MAX_PATTERN} characters, got {len(pattern)}")
    repeats, branches, nested = _count(_TOKEN.findall(pattern))
    if nested:
        raise UserError("verifier regex: pattern: a group that repeats or alternates must not itself repeat")
    if repeats > MAX_REPEATS or branches > MAX_BRANCHES:
        raise UserError(
            f"verifier regex: pattern: expected at most {MAX_REPEATS} repetitions and {MAX_BRANCHES} "
            "optional parts or alternatives; possessive repetitions (\\d++) are free"
        )


def _count(tokens: list[str]) -> tuple[int, int, bool]:
    """Repetitions that backtrack, optional parts and alternatives, and whether a varying group repeats."""
    repeats = branches = 0
    groups = [False]  # whether each open group varies in what it can match
    closed_varies = False
    position = 0
    while position < len(tokens):
        token = tokens[position]
        if token.startswith("("):
            groups.append(False)
        elif token == ")" and len(groups) > 1:
            closed_varies = groups.pop()
            groups[-1] |= closed_varies
        elif token == "|":
            branches += 1
            groups[-1] = True
        elif _quantifies(token):
            if closed_varies and tokens[position - 1] == ")" and token != "?":
                return repeats, branches, True
            mark = tokens[position + 1] if position + 1 < len(tokens) else ""
            groups[-1] = True
            branches += token == "?"
            repeats += token != "?" and mark != "+" and not _fixed(token)
            position += mark in ("+", "?")
        position += 1
    return repeats, branches, False


def _quantifies(token: str) -> bool:
    return token in ("*", "+", "?") or (token.startswith("{") and token != "{}" and len(token) > 2)


def _fixed(token: str) -> bool:
    return token.startswith("{") and "," not in token
