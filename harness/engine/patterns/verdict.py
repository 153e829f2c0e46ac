"""Reading a verifier's reply: its verdict or score stands at the very start, or it gave none."""

from __future__ import annotations

import re
from typing import Literal

from harness.routing.parse import visible_text

Verdict = Literal["accept", "revise", "unparseable"]

_AROUND = r"[\s*_`\"'#>\[(]*"
_WORD = re.compile(rf"{_AROUND}(ACCEPT|REVISE|REJECT)\b(?!\s*(?:/|\bor\b))", re.IGNORECASE)
_SCORE = re.compile(
    rf"{_AROUND}(?:score\b[\s*_`\"']*[:=]?[\s*_`\"']*)?(\d{{1,3}}(?:\.\d{{1,6}})?)\s*(%|/\s*(\d{{1,3}})(?![\d.]))?(?![\w.]*\d)",
    re.IGNORECASE,
)


def verdict_of(reply: str | None) -> Verdict:
    """`accept` only where the reply begins with that very word; `ACCEPTABLE` or a verdict further on is none."""
    found = _WORD.match(visible_text(reply))
    if found is None:
        return "unparseable"
    return "accept" if found[1].upper() == "ACCEPT" else "revise"


def score_of(reply: str | None) -> float | None:
    """The score at the start, from 0 to 1: `0.8`, `80%`, `8/10`, with or without `Score:` before it."""
    found = _SCORE.match(visible_text(reply))
    if found is None:
        return None
    value = float(found[1])
    if found[2] == "%":
        value /= 100
    elif found[3] is not None:
        if int(found[3]) == 0:
            return None
        value /= int(found[3])
    return value if 0 <= value <= 1 else None
