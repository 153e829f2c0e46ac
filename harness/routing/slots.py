"""What a routing prompt's slots hold: texts quoted as JSON on one line, bounded, with nothing invisible.

The router LLM sees a person's words only inside a JSON string. A quoted text has no line break, so it
can open no section of the prompt (`[[ ## field ## ]]` counts only at the start of a line), and no
`<<`, with which DSPy marks parts of a message that are not text. Printable letters of every script stay
readable; control, format, private and unassigned characters and lone surrogates are escaped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from harness.routing.base import Ask

REQUEST_CHARS = 6000
CONTEXT_CHARS = 2000


def bounded(text: str, limit: int) -> str:
    """`text` if it has at most `limit` characters, else its head and tail around a note of what is left out.

    Two thirds are head: an ask is usually stated first and sharpened last.
    """
    if len(text) <= limit:
        return text
    note = f"\n[... {len(text) - limit} characters left out ...]\n"
    head = limit * 2 // 3
    return text[:head] + note + text[len(text) - (limit - head) :]


def quoted(text: str) -> str:
    """`text` as a JSON string of one line; `json.loads` gives it back."""
    return _visible(json.dumps(text, ensure_ascii=False)).replace("<<", "<\\u003c")


def ask_slots(ask: Ask) -> dict[str, str]:
    """The slots `request` and `context` of an ask."""
    return {
        "request": quoted(bounded(ask.text, REQUEST_CHARS)),
        "context": quoted(bounded(ask.context, CONTEXT_CHARS)),
    }


def workers_slot(cards: Mapping[str, str]) -> str:
    """The slot `workers`: a JSON array, one line per option letter of `cards`, in its order."""
    lines = [f'{{"option": {quoted(letter)}, "description": {quoted(card)}}}' for letter, card in cards.items()]
    return "[\n" + ",\n".join(lines) + "\n]"


def _visible(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    # ensure_ascii writes a surrogate pair beyond the basic plane, and DEL as it is.
    return "\\u007f" if char == "\x7f" else json.dumps(char)[1:-1]
