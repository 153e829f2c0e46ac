"""A list or set of short items: commas, semicolons, lines, bullets, numbering or JSON.

Options: `value` (the items), `ordered` (true by default), `partial` (true scores the overlap, Jaccard's,
of a set, or the share of positions that are right in a list).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from pointsman.verifiers import spec as read
from pointsman.verifiers.exact import normalise
from pointsman.verifiers.extract import after_marker, bounded, fenced_block, first_json, unwrap

_BULLET = re.compile(r"^\s{0,8}(?:[-*•]|\d{1,3}[.)])\s{1,4}")


def items(spec: Mapping[str, Any], answer: str) -> float:
    read.only(spec, ("value", "ordered", "partial"))
    value = spec.get("value")
    if not isinstance(value, list | tuple) or not value:
        raise read.fault(spec, "value", "a list that is not empty")
    ordered, partial = read.flag(spec, "ordered", True), read.flag(spec, "partial", False)
    wanted = [normalise(str(item)) for item in value]
    given = [normalise(item) for item in items_in(answer)]
    score = _in_place(wanted, given) if ordered else _overlap(wanted, given)
    return score if partial else float(score == 1.0)


def items_in(answer: str) -> list[str]:
    """The items that a reply gives as its answer, in order."""
    text = bounded(answer)
    part = _listed(text)
    try:
        parsed = first_json(part)
    except ValueError:
        parsed = None
    if isinstance(parsed, dict):
        parsed = parsed.get("answer")
    if isinstance(parsed, list):
        return [str(item) for item in parsed]
    part = parsed if isinstance(parsed, str) else part
    bulleted = [_BULLET.sub("", line) for line in part.splitlines() if _BULLET.match(line)]
    pieces = bulleted or re.split(r"[,;\n]|\s[<>→]\s", unwrap(part))
    return [unwrap(re.sub(r"^\s*and\s", "", piece)) for piece in pieces if piece.strip()]


def _listed(text: str) -> str:
    marked = after_marker(text)
    if marked is None:
        return fenced_block(text) or text
    if _BULLET.match(marked):  # a list below its marker: all of its lines
        return text[text.rindex(marked) :]
    return marked


def _in_place(wanted: list[str], given: list[str]) -> float:
    right = sum(a == b for a, b in zip(wanted, given, strict=False))
    return right / max(len(wanted), len(given))


def _overlap(wanted: list[str], given: list[str]) -> float:
    left, right = Counter(wanted), Counter(given)
    return (left & right).total() / (left | right).total()
