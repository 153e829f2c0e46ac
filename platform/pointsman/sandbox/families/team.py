"""Exam for teams: what one worker alone seldom gets right, and several can.

    two_step    two skills in a row: the second question is about what the first one gives
    errands     a plan helps: three questions of three skills, answers in one line
    checkable   a verifier helps: hard to find, easy to check by multiplying or adding

Not part of `FAMILIES`: the traffic of a world, and every figure that rests on it, stays as it is. The skills are
those of the single families, so a world's skill table says how well each worker does here too. Half of the
wordings, and the held-out wordings of the questions within, stand in held-out splits and worlds only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random
from typing import Any

from pointsman.sandbox.families import FAMILIES, Family
from pointsman.sandbox.families.base import listed, number, text

Skills = tuple[str, ...]
Asked = tuple[str, Skills, Mapping[str, Any]]
"""A prompt, the skills that it takes in order, the verifier of its answer."""


@dataclass(frozen=True)
class TeamFamily:
    """`wordings` are drawn from by split; `ask` fills one in, `held_out` says which questions may stand within."""

    name: str
    wordings: tuple[str, ...]
    held_out: tuple[str, ...]
    ask: Callable[[Random, str, bool], Asked]

    def draw(self, rng: Random, held_out: bool) -> Asked:
        return self.ask(rng, rng.choice(self.held_out if held_out else self.wordings), held_out)


_FIRST = ("arithmetic", "percentages", "text", "ordering", "codes", "stories", "dates")
_BY_NAME: Mapping[str, Family] = {family.name: family for family in FAMILIES}

Second = Callable[[Random, str], tuple[str, Mapping[str, Any]] | None]
"""From what the first question gives to a question about it and its verifier; None where they do not go together."""


def _share(rng: Random, it: str) -> tuple[str, Mapping[str, Any]] | None:
    p = rng.randint(3, 95)
    return (f"What's {p}% of the result?", number(p * int(it) / 100, tolerance=0.01)) if it.isdigit() else None


def _binary(rng: Random, it: str) -> tuple[str, Mapping[str, Any]] | None:
    return ("Write the result in binary.", text(f"{int(it):b}")) if it.isdigit() else None


def _times(rng: Random, it: str) -> tuple[str, Mapping[str, Any]] | None:
    b = rng.randint(3, 99)
    return (f"What is the result times {b}?", number(int(it) * b)) if it.isdigit() else None


def _pounds(rng: Random, it: str) -> tuple[str, Mapping[str, Any]] | None:
    if not it.isdigit():
        return None
    return "Convert the result kilograms to pounds.", number(round(int(it) / 0.45359237, 9), relative=0.005)


def _days_after(rng: Random, it: str) -> tuple[str, Mapping[str, Any]] | None:
    if not it.isdigit() or int(it) > 900:
        return None
    day = date(2001, 1, 1) + timedelta(days=rng.randrange(8_000))
    asked = f"What date is the result days after {day}? Write it as YYYY-MM-DD."
    return asked, text(str(day + timedelta(days=int(it))))


def _backwards(rng: Random, it: str) -> tuple[str, Mapping[str, Any]] | None:
    return ('Spell "the result" backwards.', text(it[::-1])) if it.isalpha() else None


def _shifted(rng: Random, it: str) -> tuple[str, Mapping[str, Any]] | None:
    if not it.isalpha():
        return None
    n = rng.randint(2, 12)
    turned = "".join(chr((ord(letter) - 97 + n) % 26 + 97) for letter in it)
    return f"Shift every letter of the result forward by {n} in the alphabet (Caesar).", text(turned)


def _percent_times(rng: Random, it: str) -> tuple[str, Mapping[str, Any]] | None:
    p = rng.randint(3, 95)
    return (f"{p}% × that value = ?", number(p * int(it) / 100, tolerance=0.01)) if it.isdigit() else None


def _square(rng: Random, it: str) -> tuple[str, Mapping[str, Any]] | None:
    if not it.isdigit():
        return None
    return "Square that value and tell me the outcome.", number(int(it) ** 2)


def _feet(rng: Random, it: str) -> tuple[str, Mapping[str, Any]] | None:
    if not it.isdigit():
        return None
    return "Express that value metres in feet, will you?", number(round(int(it) / 0.3048, 9), relative=0.005)


def _days_before(rng: Random, it: str) -> tuple[str, Mapping[str, Any]] | None:
    if not it.isdigit() or int(it) > 900:
        return None
    day = date(2001, 1, 1) + timedelta(days=rng.randrange(8_000))
    asked = f"Counting back that value days from {day}, where do you land (YYYY-MM-DD)?"
    return asked, text(str(day - timedelta(days=int(it))))


def _in_bits(rng: Random, it: str) -> tuple[str, Mapping[str, Any]] | None:
    return ("Write that value in binary.", text(f"{int(it):b}")) if it.isdigit() else None


def _rot13(rng: Random, it: str) -> tuple[str, Mapping[str, Any]] | None:
    if not it.isalpha():
        return None
    return "ROT13 of that value?", text("".join(chr((ord(letter) - 84) % 26 + 97) for letter in it))


def _length(rng: Random, it: str) -> tuple[str, Mapping[str, Any]] | None:
    return ('How long is "that value", in characters?', number(len(it))) if it.isalpha() else None


_SECOND: tuple[tuple[str, Second], ...] = (
    ("percentages", _share), ("codes", _binary), ("arithmetic", _times), ("units", _pounds), ("dates", _days_after),
    ("text", _backwards), ("codes", _shifted),
)  # fmt: skip
_SECOND_HELD_OUT: tuple[tuple[str, Second], ...] = (
    ("percentages", _percent_times), ("arithmetic", _square), ("units", _feet), ("dates", _days_before),
    ("codes", _in_bits), ("codes", _rot13), ("text", _length),
)  # fmt: skip


def question(rng: Random, skill: str, held_out: bool) -> tuple[str, str]:
    """A question of one line whose answer is a whole number or a word, and that answer."""
    family = _BY_NAME[skill]
    while True:
        prompt, verifier = rng.choice(family.held_out if held_out else family.templates).ask(rng)
        answer = _short(verifier)
        if answer is not None and "\n" not in prompt and len(prompt) < 160:
            return prompt, answer


def _short(verifier: Mapping[str, Any]) -> str | None:
    value = verifier["value"]
    if verifier["kind"] == "numeric" and float(value).is_integer() and 2 <= value <= 20_000:
        return str(int(value))
    if verifier["kind"] == "exact" and not verifier.get("case") and re.fullmatch(r"[a-z]{3,30}", value):
        return str(value)
    return None


def two_step(rng: Random, wording: str, held_out: bool) -> Asked:
    while True:
        skill = rng.choice(_FIRST)
        first, answer = question(rng, skill, held_out)
        other, second = rng.choice(_SECOND_HELD_OUT if held_out else _SECOND)
        if other != skill and (asked := second(rng, answer)) is not None:
            return wording.format(first=first, second=asked[0]), (skill, other), asked[1]


def errands(rng: Random, wording: str, held_out: bool) -> Asked:
    skills = tuple(rng.sample(_FIRST, 3))
    asked = [question(rng, skill, held_out) for skill in skills]
    return wording.format(*(prompt for prompt, _ in asked)), skills, listed([answer for _, answer in asked])


def checkable(rng: Random, wording: str, held_out: bool) -> Asked:
    a, b = sorted(rng.sample(range(12, 99), 2))
    fields = {"sum": a + b, "product": a * b, "difference": b - a, "square": a * a}
    asked = wording.format(**fields)
    if "{square}" in wording:
        return asked, ("arithmetic",), number(a)
    pair = {"kind": "items", "value": [str(a), str(b)], "ordered": False}
    return asked, ("arithmetic",), pair


TWO_STEP = TeamFamily(
    "two_step",
    (
        "First: {first}\nThen: {second}",
        "Step 1. {first}\nStep 2. {second}",
        "{first} Once you have that: {second}",
        "Begin with this. {first} Afterwards: {second}",
    ),
    (
        "1) {first}\n2) {second}",
        "{first} Next: {second}",
        "To start with: {first} With what comes out: {second}",
        "{first} And after that: {second}",
    ),
    two_step,
)
ERRANDS = TeamFamily(
    "errands",
    (
        "I have three questions.\n(a) {0}\n(b) {1}\n(c) {2}\nGive the three answers in that order, separated by "
        "semicolons.",
        "Answer each of these.\n- {0}\n- {1}\n- {2}\nPut the answers on one line, separated by semicolons.",
        "Quiz time!\nA. {0}\nB. {1}\nC. {2}\nReply with all three, in order, with semicolons between them.",
        "Help me with this list.\n1. {0}\n2. {1}\n3. {2}\nList the answers in order, separated by semicolons.",
    ),
    (
        "Q1: {0}\nQ2: {1}\nQ3: {2}\nAll three in one line, semicolons between.",
        "* {0}\n* {1}\n* {2}\nOne line, please: the answers in the order of the questions, with semicolons.",
        "Three little things.\n[1] {0}\n[2] {1}\n[3] {2}\nAnswers in order and separated by semicolons.",
        "i. {0}\nii. {1}\niii. {2}\nPut the three answers together in that order, semicolons between them.",
    ),
    errands,
)
CHECKABLE = TeamFamily(
    "checkable",
    (
        "Find two whole numbers whose sum is {sum} and whose product is {product}.",
        "Two whole numbers differ by {difference} and their product is {product}. Which are they?",
        "Which whole number multiplied by itself makes {square}?",
        "Which two whole numbers add up to {sum} and multiply to {product}?",
    ),
    (
        "A rectangle of whole metres has an area of {product} and half its way round is {sum}. Its two sides?",
        "I am thinking of two whole numbers, {difference} apart, with product {product}. Name them.",
        "The square of what whole number is {square}?",
        "Product {product}, sum {sum}: which two whole numbers?",
    ),
    checkable,
)
TEAM_FAMILIES: tuple[TeamFamily, ...] = (TWO_STEP, ERRANDS, CHECKABLE)
