"""Exam: letters and strings."""

from __future__ import annotations

from random import Random

from pointsman.sandbox.families.base import NOUNS, Asked, family, number
from pointsman.sandbox.families.base import text as exactly


def _phrase(rng: Random) -> list[str]:
    return rng.sample(NOUNS, rng.randint(3, 5))


def backwards(rng: Random) -> Asked:
    word = "".join(rng.sample(NOUNS, 2)) if rng.random() < 0.7 else rng.choice(NOUNS)
    return {"w": word}, exactly(word[::-1])


def occurrences(rng: Random) -> Asked:
    phrase = " ".join(_phrase(rng))
    letter = rng.choice(sorted(set(phrase) - {" "}))
    return {"s": phrase, "c": letter}, number(phrase.count(letter))


def capitals(rng: Random) -> Asked:
    phrase = " ".join(_phrase(rng))
    return {"s": phrase}, exactly(phrase.upper(), case=True)


def initials(rng: Random) -> Asked:
    words = _phrase(rng)
    return {"s": " ".join(words)}, exactly("".join(word[0] for word in words))


def no_vowels(rng: Random) -> Asked:
    phrase = " ".join(_phrase(rng))
    return {"s": phrase}, exactly("".join(c for c in phrase if c not in "aeiou"))


def swapped(rng: Random) -> Asked:
    words = _phrase(rng)
    return {"s": " ".join(words)}, exactly(" ".join([words[-1], *words[1:-1], words[0]]))


def length(rng: Random) -> Asked:
    word = "".join(rng.sample(NOUNS, rng.randint(1, 3)))
    return {"w": word}, number(len(word))


FAMILY = family(
    "text",
    {
        'Spell "{w}" backwards.': backwards,
        'How many times does the letter "{c}" occur in "{s}"?': occurrences,
        'Write "{s}" in capitals.': capitals,
        'Take the first letter of each word in "{s}" and join them.': initials,
        'SHOUT this: "{s}"': capitals,
    },
    {
        '"{w}" <- mirror it': backwards,
        'Drop every vowel from "{s}".': no_vowels,
        'Swap the first and the last word of "{s}".': swapped,
        'How long is "{w}", in characters?': length,
        'How often do you see "{c}" inside "{s}"?': occurrences,
    },
)
