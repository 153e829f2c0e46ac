"""General English for the stand-in router LLM: which words and shapes belong to which topics.

It stands for what a language model knows about words; it is a small thesaurus written from ordinary
English, and holds neither a worker's name nor a world's skills. A word may belong to several topics.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pointsman.sandbox.vocabulary import stem

_TOPICS = {
    "calculating": """
        arithmetic sum add plus minus subtract multiply product divide remainder square calculate
        calculation compute evaluate maths mathematics integer digit number whole exact mental
        quotient total numerical
    """,
    "proportion": """
        percent percentage discount interest growth grow rate rebate markdown tip tax vat sale
        proportion fraction rise
    """,
    "money": """
        money price cost pay bill dollar euro pound revenue commercial shop buy sell tip tax vat
        financial finance bank savings profit budget
    """,
    "calendar": """
        calendar date day week weekday month year leap deadline schedule night monday tuesday
        wednesday thursday friday saturday sunday yearly
    """,
    "measuring": """
        unit convert conversion metric imperial measure measurement quantity physical express
        kilometre metre mile feet foot inch centimetre length kilogram gram pound ounce weight weigh
        scale litre millilitre gallon volume celsius fahrenheit temperature thermometer degree
    """,
    "spelling": """
        letter vowel consonant spell spelling character capital word string reverse backwards case
        casing mirror uppercase lowercase phrase text edit swap rewrite join
    """,
    "sequence": """
        sort rank order ordering alphabetical arrange list sequence smallest largest biggest second
        third middle size item ascending descending
    """,
    "deduction": """
        logic logical deduction deduce premise conclusion syllogism puzzle infer inference truth
        true false lie liar reason reasoning certain race beat tall tallest shortest older oldest
        younger youngest
    """,
    "correspondence": """
        message note email mail address phone ring contact sender correspondence invoice reference
        dear city customer name prose web
    """,
    "retrieving": """
        extract extraction pull find field information detail mention read return document prose
        json key
    """,
    "tabulating": """
        table tabular row column csv spreadsheet cell figure data highest lowest look-up lookup
    """,
    "enciphering": """
        cipher code coding decode encode encoding decipher encrypt morse caesar hexadecimal binary
        decimal secret shift dash dot rot alphabet
    """,
    "narrating": """
        story narrative problem everyday life children friend kid adult family sweets cookies book
        page train age old speed share evenly split remain ticket far step reading
    """,
}

_SHAPES: tuple[tuple[str, str, float], ...] = (
    ("calculating", r"^[^\n%$€£]{0,40}\d\s?(?:[+*/×]|[-x]\s)\s?\(?\d[^\n%$€£]{0,40}$", 2.0),
    ("proportion", r"\d\s?%", 2.0),
    ("money", r"[$€£]\s?\d|\d\s?[$€£]", 1.5),
    ("calendar", r"\b\d{4}-\d\d-\d\d\b|\bYYYY\b", 3.0),
    ("measuring", r"\d\s?(?:km|m|cm|mi|ft|in|kg|g|lb|oz|l|ml|gal)\b(?! per)|°\s?[CF]", 2.5),
    ("spelling", r"\"[a-z ]+\"|\"[a-z]\"", 2.0),
    ("sequence", r"(?:-?\d+, ){3}-?\d+|(?:[a-z]+, ){3}[a-z]+", 2.5),
    ("deduction", r"[∧∨¬]|[&|]\s?~|\btrue\b.{0,60}\bfalse\b|\b[Yy]es or no\b", 2.0),
    ("deduction", r"[A-Z][a-z]{1,20}[^.\n]{0,20}\b(?:\w{1,12}er than|beat)\b[^.\n]{0,10}[A-Z]", 2.0),
    ("correspondence", r"\bDear [A-Z]|\w@\w|https?://", 3.0),
    ("retrieving", r"\bDear [A-Z]|\bJSON\b", 2.0),
    ("tabulating", r"^\|.*\|[ \t]*$|^\w+(?:,\w+){2,}\s*\n\w+(?:,\w+){2,}", 4.0),
    ("enciphering", r"(?:^|\s)(?:[.-]{1,5} ){3,}|\b0[xb][0-9A-Fa-f]+|\bROT-?\d+|(?:\d{1,3}-){3}", 4.0),
    ("narrating", r"\d[^.?\n]{0,60}[.;:][^?]{0,120}\bHow (?:many|far|old)\b", 2.0),
)


def _by_stem() -> Mapping[str, tuple[str, ...]]:
    topics: dict[str, list[str]] = {}
    for topic, words in _TOPICS.items():
        for word in dict.fromkeys(stem(word) for word in words.split()):
            topics.setdefault(word, []).append(topic)
    return {word: tuple(found) for word, found in topics.items()}


TOPICS_OF = _by_stem()
"""Stem to the topics it belongs to."""

SHAPES = tuple((topic, re.compile(pattern, re.MULTILINE), weight) for topic, pattern, weight in _SHAPES)
"""Topic, what a text on it looks like, and how telling that is. Runs are bounded: searching stays quick."""
