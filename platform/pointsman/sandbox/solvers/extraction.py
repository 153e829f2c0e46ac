"""Solves the finding of details in prose."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from pointsman.sandbox.solvers.base import Answer, rule

_MAIL = r"[\w.]+@[\w.]+\w"
_REFERENCE = r"\b[A-Z]{2}-\d{4}\b"
_PHONE = r"\b\d{3}-\d{3}-\d{4}\b"
_LINK = r"https?://[\w./-]+\w"
_ORDER = r"I bought (\d+) ([a-z ]+?) under"
_SENDER = r"This is (\w+) from (\w+)\."


def _found(pattern: str, group: int = 0) -> Callable[[re.Match[str]], Answer]:
    """The first detail of the whole prompt that `pattern` fits; an empty answer where none does."""

    def solve(match: re.Match[str]) -> Answer:
        found = re.search(pattern, match.string)
        return (found[group] if found else ""), "token"

    return solve


def _amount(match: re.Match[str]) -> Answer:
    found = re.search(r"billed me (\d+)", match.string)
    return (found[1] if found else ""), "number"


def _sender(match: re.Match[str]) -> Answer:
    found = re.search(_SENDER, match.string)
    value = {"name": found[1], "city": found[2]} if found else {}
    return json.dumps(value), "json"


def _order(match: re.Match[str]) -> Answer:
    found = re.search(_ORDER, match.string)
    value = {"product": found[2], "quantity": int(found[1])} if found else {}
    return json.dumps(value), "json"


RULES = (
    rule(r"Which email address do you see here\?", _found(_MAIL)),
    rule(r"Pull the order reference out of this note", _found(_REFERENCE)),
    rule(r"sender's name and city as JSON", _sender),
    rule(r"what number should I ring back\?", _found(_PHONE)),
    rule(r"→ @\?", _found(_MAIL)),
    rule(r"to whom is this written\?", _found(r"Dear (\w+),", 1)),
    rule(r"How much did they bill\?", _amount),
    rule(r"Give me only the web link", _found(_LINK)),
    rule(r"return JSON with keys product and quantity", _order),
    rule(r"What reference did they quote\?", _found(_REFERENCE)),
)
