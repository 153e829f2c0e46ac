"""Solves small deductions."""

from __future__ import annotations

import re

from pointsman.sandbox.solvers.base import Answer, rule

_N = r"([A-Z][a-z]+)"


def _chain_end(match: re.Match[str]) -> Answer:
    first, _, _, last = match.groups()
    return last, "word", (first, match[2])


def _oldest(match: re.Match[str]) -> Answer:
    older, younger, youngest = match[1], match[2], match[3]
    return older, "word", (younger, youngest)


def _race(match: re.Match[str]) -> Answer:
    """The one who was never beaten."""
    beaten = {match[5], match[7]}
    runners = match[1], match[2], match[3]
    winner = next(name for name in runners if name not in beaten)
    return winner, "word", tuple(name for name in runners if name != winner)


def _syllogism(match: re.Match[str]) -> Answer:
    x, _, _, z, subject, predicate = match.groups()
    return ("yes" if (subject, predicate) == (x, z) else "no"), "yes_no"


def _excluded(match: re.Match[str]) -> Answer:
    never, group, member, same_group, subject, predicate = match.groups()
    follows = group == same_group and subject == member and predicate == never
    return ("no" if follows else "yes"), "yes_no"


def _modus(match: re.Match[str]) -> Answer:
    """ "Off" proves nothing (affirming the consequent); "on" proves that there is none (modus tollens)."""
    event, negation = match[2], match[3]
    return ("yes" if event == "on" and negation else "no"), "yes_no"


def _liar(match: re.Match[str]) -> Answer:
    liar, _, speaker, said = match.groups()
    is_open = (said == "yes") != (speaker == liar)
    return ("yes" if is_open else "no"), "yes_no"


def _formula(match: re.Match[str]) -> Answer:
    p, q, r = (group == "true" for group in match.groups())
    return str((p and q) or not r).lower(), "true_false"


def _right_end(match: re.Match[str]) -> Answer:
    return match[3], "word", (match[1], match[2])


RULES = (
    rule(rf"{_N} is taller than {_N}\. {_N} is taller than {_N}\. Who is the shortest", _chain_end),
    rule(r"All (\w+)s are (\w+)s\. All (\w+)s are (\w+)s\. Must every (\w+) be a (\w+)\?", _syllogism),
    rule(rf"{_N}, {_N} and {_N} raced\. {_N} beat {_N}, and {_N} beat {_N}\. Who won", _race),
    rule(rf"{_N} always lies and {_N} never does\. .* is open, {_N} says (yes|no)", _liar),
    rule(r"P = (\w+), Q = (\w+), R = (\w+)\. P & Q \| ~R", _formula),
    rule(r"p:=(\w+) q:=(\w+) r:=(\w+) ; \(p ∧ q\) ∨ ¬r", _formula),
    rule(rf"{_N} is older than {_N}; {_N} is younger than \2\. Who is the oldest", _oldest),
    rule(r"No (\w+) is a (\w+)\. Every (\w+) is a (\w+)\. Can a (\w+) be a (\w+)\?", _excluded),
    rule(r"If there is (\w+), the match is always off\. Today it is (on|off)\. .* there is (no )?\1\?", _modus),
    rule(rf"{_N} sits left of {_N}, who sits left of {_N}\. Who is furthest right", _right_end),
)
