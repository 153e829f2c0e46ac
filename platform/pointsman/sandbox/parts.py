"""Splitting a text that asks for several things into what it asks, by words and marks that anyone would see.

It reads English and nothing else: used by the workers' programs, which have to find the questions in a prompt, and
by the stand-in router LLM, which plans. Neither sees the exam.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_CHARS = 4_000

_ITEM = re.compile(r"^\s{0,4}(?:\([a-z]\)|\[\d\]|[-*•]|[A-Z]\.|Q\d:|\d[.)]|[ivx]{1,4}\.)\s+(.+)$")
_LIST = re.compile(r"\bsemicolons?\b", re.IGNORECASE)
_LINK = re.compile(
    r"\s(?:(?:then|next|afterwards|(?:and )?after that|once you have that|with what comes out)\s?[:,]|step 2\.|2\))\s+",
    re.IGNORECASE,
)
_HEAD = re.compile(r"^(?:first:|step 1\.|1\)|begin with this\.|to start with:)\s+", re.IGNORECASE)
_POINTER = re.compile(
    r"^\W*(?:(?:do|answer) )?(?:only )?(?:part (\d)(?: of the request)?|the(?: whole)? request)\W*$", re.IGNORECASE
)
_IT = re.compile(r"\b(?:the result|that value|that number|that word)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Parts:
    """What a text asks. `chained`: each part is about what the one before gives. `closing` says how to put the
    answers together, where the parts stand beside each other."""

    parts: tuple[str, ...]
    chained: bool = False
    closing: str | None = None

    @property
    def several(self) -> bool:
        return len(self.parts) > 1


def split(text: str) -> Parts:
    """The parts of a text; a text that asks one thing is its own only part."""
    text = text.strip()[:MAX_CHARS]
    return _listed(text) or _chained(text) or Parts((text,))


def pointed(subtask: str, request: str) -> str | None:
    """The text of the request that a subtask points at ("Do part 2 of the request."); None where it points at none."""
    pointer = _POINTER.match(subtask)
    if pointer is None:
        return None
    if pointer[1] is None:
        return request
    parts = split(request).parts
    return parts[int(pointer[1]) - 1] if 1 <= int(pointer[1]) <= len(parts) else None


def about(part: str, it: str) -> str:
    """A part with what it is about put in the place of the words for it."""
    return _IT.sub(lambda match: it, part)


def refers(part: str) -> bool:
    """Whether a part is about what came before."""
    return _IT.search(part) is not None


def _listed(text: str) -> Parts | None:
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or not _LIST.search(lines[-1]):
        return None
    items = [match[1].strip() for line in lines[:-1] if (match := _ITEM.match(line))]
    return Parts(tuple(items), closing=lines[-1].strip()) if len(items) > 1 else None


def _chained(text: str) -> Parts | None:
    link = _LINK.search(text)
    if link is None or not refers(text[link.end() :]):
        return None
    first = _HEAD.sub("", text[: link.start()].strip())
    return Parts((first, text[link.end() :].strip()), chained=True) if first else None
