"""The words of requests that a card may be written in, and what requests look like, said in plain English.

A card is read by a language model, so it is written in words that any reader knows: content words as people
use them, and names for what a text shows beyond its words (tables, percentages, code). No identifier, number
or name of a person or product that few requests share gets in: `common` takes what several episodes have.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache

from harness.optimise.rows import Rows

WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*[A-Za-z]")
MIN_EPISODES = 3
MIN_KEYS = 2
_MAX_LETTERS = 20

# Function words, and the words of talk between a person and an assistant: they tell no task from another.
_STOP_WORDS = """
    a about after again all also am an and any are as at back be because been before being both but by can could did do
    does doing done down each either else ever every few for from further get gets give given gives go goes going got
    had has have having he her here hers him his how however i if in into is it its itself just know let like lot made
    make makes many may me might mine more most much must my need needs no nor not now of off on once one only or other
    others our ours out over own please put same say says see shall she should show since so some someone something
    such take tell than thank thanks that the their theirs them then there these they thing things this those though
    through to together too two under until up upon us use used uses using very want wants was way we well went were
    what when where whether which while who whom whose why will with within without would yes yet you your yours hello
    hi dear help question answer answers reply respond response find
    """
_STOP = frozenset(_STOP_WORDS.split())

# Words that could be read as a word to the router, whoever wrote the request that they come from.
_COMMANDS = """
    always never ignore disregard choose chosen select selected prefer preferred pick picked option options worker
    workers router route routing instruction instructions prompt system assistant model best better worst override must
    """
_TO_THE_ROUTER = frozenset(_COMMANDS.split())

_LOOKS: tuple[tuple[str, str], ...] = (
    ("tables with rows and columns", r"^\s*\|.*\|\s*$|^[\w.]+(?:,[\w.]+){2,}\s*\n[\w.]+(?:,[\w.]+){2,}"),
    ("percentages", r"\d\s?%|\bper ?cent\b"),
    ("prices in dollars or euros", r"[$€£]\s?\d|\d\s?[$€£]"),
    ("calendar dates", r"\b\d{4}-\d\d-\d\d\b|\b\d{1,2}/\d{1,2}/\d{2,4}\b"),
    ("calculation with numbers", r"\d\s*[+*×÷^]\s*\(?\d|\d\s[-/]\s\(?\d|\)\s*[-+*/×÷^]\s*\d"),
    ("email and web addresses", r"\w@\w|https?://"),
    ("JSON", r"\{\s*\"\w+\"\s*:|\bJSON\b"),
    ("short quoted strings", r"\"[^\"\n]{1,40}\""),
    ("lists of items", r"(?:[\w-]+, ){3,}[\w-]+"),
    ("hexadecimal and binary numbers", r"\b0[xb][0-9A-Fa-f]+\b"),
    ("formal logic symbols", r"[∧∨¬∀∃⇒]|\w\s&\s~?\w"),
    ("measurement units", r"°\s?[CF]\b|\d\s?(?:km|cm|mm|mi|ft|kg|mg|lb|lbs|oz|ml|gal)\b"),
    ("letters and messages to read", r"^(?:Dear|Hi|Hello) \w"),
    ("source code", r"```|\bdef \w+\(|\breturn\b.*;|#include|\bclass \w+[:({]"),
    ("mathematical formulas", r"\\(?:frac|sqrt|sum|int|cdot|boxed)\b|\$[^$\n]+\$"),
    ("multiple-choice questions", r"(?m)^\s*\(?[A-D][).:]\s.*\n\s*\(?[B-E][).:]\s"),
    ("long passages of text", r"(?s)\A.{2500,}"),
)
_LOOK_PATTERNS = tuple((name, re.compile(pattern, re.MULTILINE)) for name, pattern in _LOOKS)


def content_words(text: str) -> frozenset[str]:
    """Lower-cased words of three to twenty letters that tell something of a task."""
    words = (word.lower().replace("’", "'").removesuffix("'s") for word in WORD.findall(text))
    return frozenset(word for word in words if 2 < len(word) <= _MAX_LETTERS and word not in _STOP)


def looks(text: str) -> tuple[str, ...]:
    """What a text looks like, in plain English, whatever its words."""
    return tuple(name for name, pattern in _LOOK_PATTERNS if pattern.search(text))


@lru_cache(maxsize=50_000)
def terms(text: str, task: str | None = None) -> frozenset[str]:
    """What may be said of a request: its content words, what it looks like, the name of its task."""
    said = content_words(text) - _TO_THE_ROUTER
    named = (task_words(task),) if task and task_words(task) else ()
    return frozenset((*said, *looks(text), *named))


def task_words(task: str) -> str:
    """A task's label as words: `commonsense_qa` is "commonsense qa"."""
    words = " ".join(re.findall(r"[A-Za-z0-9]+", task.replace("_", " "))).lower()
    return "" if set(words.split()) & _TO_THE_ROUTER else words[:40]


def common(rows: Rows) -> Mapping[str, tuple[int, ...]]:
    """Terms that `MIN_EPISODES` episodes have, of two keys at least where keys are known: with their rows.

    What one key alone writes, however often, is in no card.
    """
    found: defaultdict[str, list[int]] = defaultdict(list)
    for index, row in enumerate(rows.rows):
        for term in terms(row.ask.text, row.task):
            found[term].append(index)
    several_keys = len({row.key for row in rows.rows}) > 1
    kept = {}
    for term, indices in sorted(found.items()):
        if len({rows.rows[i].episode for i in indices}) < MIN_EPISODES:
            continue
        if several_keys and len({rows.rows[i].key for i in indices}) < MIN_KEYS:
            continue
        kept[term] = tuple(indices)
    return kept
