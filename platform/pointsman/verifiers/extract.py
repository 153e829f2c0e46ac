"""What counts as the final answer in a model's reply.

In this order: the `answer` of a JSON object that is the whole reply; what follows the last "Answer:";
the one fenced block; the reply itself where it is one line; else its last line. Thinking blocks are
dropped first. Only the reply's last 20,000 characters are read, so no check can be made slow by length.
"""

from __future__ import annotations

import json
import re
from typing import Any

MAX_CHARS = 20_000

_MARKER = re.compile(r"(?:final answer|answer|result)\b[*_` ]{0,4}(?:is\b ?:?|:|=)[*_` ]{0,4}", re.IGNORECASE)
_FENCE = re.compile(r"```[A-Za-z0-9_+-]{0,20}[ \t]{0,4}\n(.*?)```", re.DOTALL)
_WRAPPERS = "*_`\"'“”‘’ \t\r\n"


def bounded(reply: str) -> str:
    """The end of a reply, without its thinking."""
    tail = reply[-MAX_CHARS:]
    _, closed, after = tail.rpartition("</think>")
    return (after if closed else tail).strip()


def final_answer(reply: str) -> str:
    """The final answer's text, unwrapped; "" where the reply is empty."""
    text = bounded(reply)
    if (value := _answer_key(text)) is not None:
        return value
    if (marked := after_marker(text)) is not None:
        return unwrap(marked)
    if fenced := fenced_block(text):
        return unwrap(fenced)
    lines = [line for line in text.splitlines() if line.strip()]
    return unwrap(lines[-1]) if lines else ""


def after_marker(text: str) -> str | None:
    """What follows the last "Answer:" (its line, or the lines after it where that is bare), or None."""
    ends = [match.end() for match in _MARKER.finditer(text)]
    if not ends:
        return None
    rest = text[ends[-1] :]
    if fenced := (fenced_block(rest) if rest.lstrip().startswith("```") else None):
        return fenced
    return rest.lstrip().split("\n", 1)[0]


def fenced_block(text: str) -> str | None:
    """The last fenced block's content."""
    blocks = _FENCE.findall(text)
    return blocks[-1] if blocks else None


def unwrap(text: str) -> str:
    """Without surrounding emphasis, quotes, `\\boxed{}`, and one closing full stop."""
    text = text.strip(_WRAPPERS)
    if text.startswith("\\boxed{") and text.endswith("}"):
        text = text[len("\\boxed{") : -1]
    if text.endswith(".") and not text.endswith(".."):
        text = text[:-1]
    return text.strip(_WRAPPERS)


def first_json(text: str, attempts: int = 50) -> Any:
    """The first object or list of JSON in `text`; raises ValueError where there is none."""
    decoder = json.JSONDecoder()
    for match in re.finditer(r"[{\[]", text):
        if attempts <= 0:
            break
        attempts -= 1
        try:
            return decoder.raw_decode(text, match.start())[0]
        except (ValueError, RecursionError):
            continue
    raise ValueError("no JSON in the text")


def _answer_key(text: str) -> str | None:
    whole = (fenced_block(text) or text).strip()
    if not whole.startswith("{"):
        return None
    try:
        value = json.loads(whole)
    except (ValueError, RecursionError):
        return None
    answer = value.get("answer") if isinstance(value, dict) else None
    if answer is None:
        return None
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
