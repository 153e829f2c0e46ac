"""Exam: ciphers and encodings."""

from __future__ import annotations

from random import Random

from pointsman.sandbox.families.base import NOUNS, Asked, family, number, text

_MORSE_A_TO_M = ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. --"
_MORSE_N_TO_Z = "-. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.."
_MORSE_A_TO_Z = f"{_MORSE_A_TO_M} {_MORSE_N_TO_Z}".split(" ")
_MORSE = dict(zip("abcdefghijklmnopqrstuvwxyz", _MORSE_A_TO_Z, strict=True))


def _shift(word: str, by: int) -> str:
    return "".join(chr((ord(letter) - 97 + by) % 26 + 97) for letter in word)


def encipher(rng: Random) -> Asked:
    word, n = rng.choice(NOUNS), rng.randint(2, 12)
    return {"w": word, "n": n}, text(_shift(word, n))


def decipher(rng: Random) -> Asked:
    word, n = rng.choice(NOUNS), rng.randint(2, 12)
    return {"w": _shift(word, n), "n": n}, text(word)


def rot13(rng: Random) -> Asked:
    word = "".join(rng.sample(NOUNS, rng.randint(1, 2)))
    return {"w": word}, text(_shift(word, 13))


def hexadecimal(rng: Random) -> Asked:
    value = rng.randint(300, 65_000)
    return {"h": f"0x{value:X}"}, number(value)


def from_bits(rng: Random) -> Asked:
    value = rng.randint(40, 2_000)
    return {"bits": f"{value:b}"}, number(value)


def to_bits(rng: Random) -> Asked:
    value = rng.randint(40, 1_000)
    return {"n": value}, text(f"{value:b}")


def morse(rng: Random) -> Asked:
    words = rng.sample(NOUNS, rng.randint(1, 2))
    return {"m": " / ".join(" ".join(_MORSE[c] for c in word) for word in words)}, text(" ".join(words))


def numbered(rng: Random) -> Asked:
    word = "".join(rng.sample(NOUNS, rng.randint(1, 2)))
    return {"nums": "-".join(str(ord(c) - 96) for c in word)}, text(word)


FAMILY = family(
    "codes",
    {
        "Shift every letter of {w} forward by {n} in the alphabet (Caesar).": encipher,
        "What is {h} in decimal?": hexadecimal,
        "Decode this Morse: {m}": morse,
        "{nums} with a=1, b=2, c=3 ... says what?": numbered,
        "{h} = ?": hexadecimal,
    },
    {
        "0b{bits} = ?": from_bits,
        "ROT13 of {w}?": rot13,
        "{m} (dots and dashes: what do they say?)": morse,
        "Someone moved each letter {n} places on and got {w}. What was it before?": decipher,
        "Write {n} in binary.": to_bits,
    },
)
