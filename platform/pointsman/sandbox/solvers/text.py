"""Solves questions about letters and strings."""

from __future__ import annotations

import re
from collections.abc import Callable

from pointsman.sandbox.solvers.base import Answer, rule


def _letters(compute: Callable[[str], str]) -> Callable[[re.Match[str]], Answer]:
    return lambda match: (compute(match[1]), "letters")


def _count(match: re.Match[str]) -> Answer:
    return str(match[2].count(match[1])), "number"


def _length(match: re.Match[str]) -> Answer:
    return str(len(match[1])), "number"


def _swapped(phrase: str) -> str:
    first, *middle, last = phrase.split()
    return " ".join((last, *middle, first))


RULES = (
    rule(r'Spell "([^"]+)" backwards', _letters(lambda word: word[::-1])),
    rule(r'the letter "(.)" occur in "([^"]+)"', _count),
    rule(r'Write "([^"]+)" in capitals', _letters(str.upper)),
    rule(
        r'first letter of each word in "([^"]+)"',
        _letters(lambda phrase: "".join(word[0] for word in phrase.split())),
    ),
    rule(r'SHOUT this: "([^"]+)"', _letters(str.upper)),
    rule(r'^"([^"]+)" <- mirror', _letters(lambda word: word[::-1])),
    rule(r'Drop every vowel from "([^"]+)"', _letters(lambda phrase: re.sub("[aeiou]", "", phrase))),
    rule(r'Swap the first and the last word of "([^"]+)"', _letters(_swapped)),
    rule(r'How long is "([^"]+)", in characters', _length),
    rule(r'How often do you see "(.)" inside "([^"]+)"', _count),
)
