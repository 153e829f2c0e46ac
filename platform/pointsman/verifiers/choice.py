"""The letter of a multiple choice, alone or before its text; or the option's text itself.

Options: `value` (one letter), `options` (letter to text; lets an answer by text count).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pointsman.verifiers import spec as read
from pointsman.verifiers.exact import normalise
from pointsman.verifiers.extract import final_answer

# A bare capital that begins a sentence ("A train ...") is an article, not a choice.
_LETTER = re.compile(r"^(?:option|choice|letter)?\s{0,3}[(\[]?([A-Z])(?:[)\].:,]|\s{0,3}$|\s{1,3}[-–—])", re.IGNORECASE)
_NAMED = re.compile(r"\b(?:option|choice|letter)\s{1,3}[(\[]?([A-Z])\b", re.IGNORECASE)


def choice(spec: Mapping[str, Any], answer: str) -> float:
    read.only(spec, ("value", "options"))
    letter = read.text(spec, "value")
    if not re.fullmatch(r"[A-Za-z]", letter):
        raise read.fault(spec, "value", "one letter")
    options = spec.get("options", {})
    if not isinstance(options, Mapping) or not all(isinstance(text, str) for text in options.values()):
        raise read.fault(spec, "options", "an object from letters to texts")
    return float(chosen_letter(final_answer(answer), options) == letter.upper())


def chosen_letter(final: str, options: Mapping[str, str]) -> str | None:
    """The one letter that a final answer chooses, None where it names none or several."""
    if match := _LETTER.match(final.strip()):
        return str(match.group(1)).upper()
    named = {str(letter).upper() for letter in _NAMED.findall(final)}
    if len(named) == 1:
        return named.pop()
    given = normalise(final)
    matching = [letter.upper() for letter, text in options.items() if normalise(text) == given]
    return matching[0] if len(matching) == 1 else None
