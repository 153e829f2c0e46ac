"""Parses a router LLM's reply to one of the workers it was offered, whatever the reply is wrapped in.

In order: thinking blocks are dropped; then the first of these that is there decides: the `option`
section of the prompt's format, JSON objects, the whole reply as one value, a last line that states
the answer, running text. Several workers are `ambiguous`, none is `unknown`, and no reply is ever
completed by a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.routing.found_json import objects_in
from harness.routing.names import Offered
from pointsman.words import ParseStatus

MAX_CHARS = 16_000
_MAX_LINE = 200
_MAX_REPLY = 200_000
_THINK = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_THINK_END = re.compile(r"\A.*</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\x00]")
HEADER = re.compile(r"\[\[\s?##\s?(\w+)\s?##\s?\]\]")
_STATED = re.compile(
    r"(?i:\W*(?:final|best|my|the|so|therefore|,|\s)*(?:option|answer|choice|pick|worker)\s*(?:is|:|=|->|→)).+"
)
_KEYS = ("option", "worker", "choice", "answer", "pick", "selected", "letter", "model", "name")


@dataclass(frozen=True, slots=True)
class Pick:
    """What a reply named: a worker only with status `ok` or `repaired`."""

    worker: str | None
    status: ParseStatus


def parse_pick(reply: str | None, options: Mapping[str, str]) -> Pick:
    """The worker that `reply` picks among `options` (letter → worker name)."""
    text = visible_text(reply)
    if not text:
        return Pick(None, "empty")
    clean = text == (reply or "").strip()
    offered = Offered(options)
    if values := sections(text, "option"):
        return _decided(
            _of_values(values, offered), clean and text.startswith("[[") and values[0] in options and len(values) == 1
        )
    if found := objects_in(text):
        named = [value for item in found for value in _answers(item)]
        if named:
            return _decided(_of_values(named, offered), False)
    if whole := offered.resolve(text):
        return _decided(whole, clean and text in options)
    last = text.splitlines()[-1][-_MAX_LINE:]
    if _STATED.fullmatch(last) and (stated := offered.mentioned(last)):
        return _decided(stated, False)
    return _decided(offered.mentioned(text), False)


def visible_text(reply: str | None) -> str:
    """The reply without thinking blocks (unclosed ones too), invisible characters and outer space.

    Of a very long reply the end is kept: that is where answers stand.
    """
    text = _THINK.sub("", (reply or "")[-_MAX_REPLY:])
    text = _THINK_END.sub("", text)
    return _INVISIBLE.sub("", text).strip()[-MAX_CHARS:]


def sections(text: str, name: str) -> list[str]:
    """The contents of every section `[[ ## name ## ]]` of `text`, in order."""
    headers = list(HEADER.finditer(text))
    ends = [*(header.start() for header in headers[1:]), len(text)]
    return [
        text[header.end() : end].strip()
        for header, end in zip(headers, ends, strict=False)
        if header.group(1).lower() == name
    ]


def _of_values(values: Iterable[str], offered: Offered) -> set[str]:
    found: set[str] = set()
    for value in values:
        found |= _of_value(value, offered)
    return found


def _of_value(value: str, offered: Offered) -> set[str]:
    if named := offered.resolve(value):
        return named
    answers = [answer for item in objects_in(value) for answer in _answers(item)]
    if answers:
        return set().union(*(offered.resolve(answer) or offered.mentioned(answer) for answer in answers))
    return offered.mentioned(value)


def _answers(item: Mapping[str, Any]) -> list[str]:
    """The values under the keys that state an answer; a list of one counts as its item."""
    answers = []
    for key, value in item.items():
        if key.strip().lower() in _KEYS:
            inner = value[0] if isinstance(value, list) and len(value) == 1 else value
            answers.append(inner if isinstance(inner, str) else "")
    return answers


def _decided(found: set[str], exact: bool) -> Pick:
    if len(found) == 1:
        return Pick(next(iter(found)), "ok" if exact else "repaired")
    return Pick(None, "ambiguous" if found else "unknown")
