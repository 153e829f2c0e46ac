"""37 counts of a text's surface: length, digits, code, LaTeX, question words, punctuation.

They see what a sentence embedding blurs: whether a text is code, how long it is, whether options follow.
Counts enter as ln(1 + n), shares of the characters as they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from distill.arrays import Floats

VERSION = 1
_COUNTED: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.IGNORECASE | re.MULTILINE))
    for name, pattern in (
        ("words", r"\w+"),
        ("lines", r"\n"),
        ("sentences", r"[.!?](?:\s|$)"),
        ("numbers", r"\d+(?:[.,]\d+)*"),
        ("question_marks", r"\?"),
        ("commas", r","),
        ("quotes", r"[\"'`]"),
        ("colons", r":"),
        ("dashes", r"[-–—]"),
        ("money", r"[$€£%]"),
        ("latex_commands", r"\\[a-z]+"),
        ("latex_dollars", r"\$[^$\n]+\$"),
        ("code_words", r"\b(?:def|return|import|class|function|assert|print|for|while)\b"),
        ("doctests", r">>>|'''|\"\"\"|```"),
        ("calls", r"\w\("),
        ("operators", r"[=<>+*/^]"),
        ("underscores", r"\w_\w"),
        ("who_when_where", r"\b(?:who|when|where)\b"),
        ("what_which", r"\b(?:what|which)\b"),
        ("how_many", r"\bhow (?:many|much|long|far|old)\b"),
        ("how_why", r"\b(?:how|why)\b"),
        ("options", r"^\s*[(\[]?[a-e][).\]:]"),
        ("instructions", r"\b(?:write|find|compute|calculate|solve|prove|translate|list|explain)\b"),
        ("capitalised", r"(?-i:\b[A-Z][a-z]+)"),
        ("acronyms", r"(?-i:\b[A-Z]{2,}\b)"),
    )
)
_SHARES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("letters", r"[^\W\d_]"),
        ("digits", r"\d"),
        ("spaces", r"\s"),
        ("upper", r"[A-Z]"),
        ("punctuation", r"[^\w\s]"),
        ("beyond_ascii", r"[^\x00-\x7f]"),
    )
)
_ENDS = ("?", ".", ":")
NAMES = (
    "characters",
    *(name for name, _ in _COUNTED),
    *(f"share_{name}" for name, _ in _SHARES),
    *(f"ends_with_{mark}" for mark in _ENDS),
    "word_length",
    "starts_with_question",
)
_QUESTION = re.compile(r"\s*(?:who|what|when|where|which|why|how|is|are|do|does|did|can)\b", re.IGNORECASE)


def surface_features(texts: Sequence[str]) -> Floats:
    """An array [texts, 37] of float32, columns as in `NAMES`; not yet standardised."""
    return np.array([_row(text) for text in texts], np.float32).reshape(len(texts), len(NAMES))


def _row(text: str) -> list[float]:
    size = max(len(text), 1)
    counts = [len(pattern.findall(text)) for _, pattern in _COUNTED]
    shares = [len(pattern.findall(text)) / size for _, pattern in _SHARES]
    words = max(counts[0], 1)
    ends = [float(text.rstrip().endswith(mark)) for mark in _ENDS]
    asks = float(bool(_QUESTION.match(text)))
    return [np.log1p(len(text)), *map(np.log1p, counts), *shares, *ends, np.log1p(len(text) / words), asks]
