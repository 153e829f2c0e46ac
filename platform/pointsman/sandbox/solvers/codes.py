"""Solves ciphers and encodings."""

from __future__ import annotations

import re
from string import ascii_lowercase

from pointsman.sandbox.solvers.base import Answer, rule

_SIGNS = {
    ".-": "a", "-...": "b", "-.-.": "c", "-..": "d", ".": "e", "..-.": "f", "--.": "g", "....": "h",
    "..": "i", ".---": "j", "-.-": "k", ".-..": "l", "--": "m", "-.": "n", "---": "o", ".--.": "p",
    "--.-": "q", ".-.": "r", "...": "s", "-": "t", "..-": "u", "...-": "v", ".--": "w", "-..-": "x",
    "-.--": "y", "--..": "z",
}  # fmt: skip
_M = r"([.-]+(?: (?:[.-]+|/))*)"


def _rotated(word: str, by: int) -> Answer:
    turned = ascii_lowercase[by % 26 :] + ascii_lowercase[: by % 26]
    return word.translate(str.maketrans(ascii_lowercase, turned)), "letters"


def _morse(match: re.Match[str]) -> Answer:
    words = match[1].split(" / ")
    return " ".join("".join(_SIGNS[sign] for sign in word.split()) for word in words), "letters"


def _numbered(match: re.Match[str]) -> Answer:
    return "".join(ascii_lowercase[int(part) - 1] for part in match[1].split("-")), "letters"


def _hexadecimal(match: re.Match[str]) -> Answer:
    return str(int(match[1], 16)), "number"


def _from_bits(match: re.Match[str]) -> Answer:
    return str(int(match[1], 2)), "number"


def _to_bits(match: re.Match[str]) -> Answer:
    return bin(int(match[1]))[2:], "token"


RULES = (
    rule(r"Shift every letter of ([a-z]+) forward by (\d+)", lambda m: _rotated(m[1], int(m[2]))),
    rule(r"What is 0x([0-9A-F]+) in decimal", _hexadecimal),
    rule(rf"Decode this Morse: {_M}", _morse),
    rule(r"^(\d+(?:-\d+)+) with a=1", _numbered),
    rule(r"^0x([0-9A-F]+) = \?", _hexadecimal),
    rule(r"^0b([01]+) = \?", _from_bits),
    rule(r"ROT13 of ([a-z]+)\?", lambda m: _rotated(m[1], 13)),
    rule(rf"^{_M} \(dots and dashes", _morse),
    rule(r"moved each letter (\d+) places on and got ([a-z]+)\.", lambda m: _rotated(m[2], -int(m[1]))),
    rule(r"Write (\d+) in binary", _to_bits),
)
