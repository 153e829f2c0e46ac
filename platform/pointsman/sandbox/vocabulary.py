"""Content words of English, lightly stemmed: what two texts can have in common."""

from __future__ import annotations

import re

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?", re.IGNORECASE)
_SUFFIXES = (
    "ations",
    "ation",
    "ingly",
    "ings",
    "ing",
    "ions",
    "ion",
    "ical",
    "ally",
    "ies",
    "es",
    "ed",
    "ly",
    "al",
    "s",
)
_STOP_WORDS = frozenset(
    word
    for line in (
        "a about above after all also am an and any anything are as at away back be because been before being below",
        "best between both but by can could did do does done each either else elsewhere every few for from get gets",
        "give given gives go goes going good got had has have he her here him his how i i'm if in inside into is it",
        "its just know like many may me might more most much must my need neither never no nor not now of off often",
        "on once one only or other others otherwise our out over own per please put same says see several she",
        "should show since so some still such take tell than that the their them then there these they thing things",
        "this those through time to together too under until up us use used using very want was we well were what",
        "what's when where which who whom whose will with within without work would yes you your",
    )
    for word in line.split()
)


def stems(text: str) -> list[str]:
    """The stems of a text's content words, in order: three letters or more, no function words."""
    words = (word.casefold() for word in _WORD.findall(text))
    return [stem(word) for word in words if len(word) > 2 and word not in _STOP_WORDS]


def content_words(text: str) -> frozenset[str]:
    """The set of stems."""
    return frozenset(stems(text))


def stem(word: str) -> str:
    """A word without its commonest endings, never shorter than three letters."""
    word = word.removesuffix("'s")
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)]
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "sl":
        word = word[:-1]
    return word.rstrip("e") if len(word.rstrip("e")) >= 3 else word
