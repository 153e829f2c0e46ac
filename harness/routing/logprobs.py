"""Option log-probabilities from a chat completion: what the router LLM thought of every letter.

The position is that of the answer: the first token after the header `[[ ## option ## ]]`, else the
first token of the reply. Variants of a letter (`A`, ` A`, `ĠA`, `A\\n`) are one option, their
probabilities added.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.routing.completion import first_choice
from harness.routing.parse import HEADER

LOWEST = -50.0  # providers write -9999 or -inf for "never"
MARGIN = 1.0  # nats by which a letter outside the top-k lies below the bound that is known for it
_SPACES = str.maketrans({"Ġ": " ", "▁": " ", "Ċ": "\n"})  # how byte-pair vocabularies spell white space
_AROUND = " \t\r\n\"'`*().:,"


@dataclass(frozen=True, slots=True)
class LetterLogprobs:
    """Log-probability by option letter, for every letter, and whether some had to be floored.

    `answer` is the letter that was sampled at the position.
    """

    by_letter: dict[str, float]
    answer: str
    floored: bool


def has_logprobs(reply: Any) -> bool:
    """Whether the provider gave any log-probabilities with its reply."""
    return bool(_tokens(reply))


def letter_logprobs(reply: Any, letters: Sequence[str]) -> LetterLogprobs | None:
    """The log-probabilities of `letters`; None where no letter was sampled at the answer's position."""
    token = _answer_token(_tokens(reply))
    answer = _letter(token.get("token"), letters) if token else None
    if token is None or answer is None:
        return None
    top = token.get("top_logprobs")
    seen: dict[str, float] = {}
    for entry in [token, *(top if isinstance(top, list) else [])]:
        # The sampled token usually stands in its own top-k too: by text, it counts once.
        if isinstance(entry, dict) and isinstance(text := entry.get("token"), str):
            seen.setdefault(text, _clipped(entry.get("logprob")))
    found: dict[str, list[float]] = {}
    for text, logprob in seen.items():
        if letter := _letter(text, letters):
            found.setdefault(letter, []).append(logprob)
    floor = _floor(seen)
    by_letter = {letter: _log_sum(found[letter]) if letter in found else floor for letter in letters}
    return LetterLogprobs(by_letter, answer, len(found) < len(letters))


def _tokens(reply: Any) -> list[Mapping[str, Any]]:
    choice = first_choice(reply)
    logprobs = choice.get("logprobs") if isinstance(choice, dict) else None
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    return [token for token in content if isinstance(token, dict)] if isinstance(content, list) else []


def _answer_token(tokens: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    texts = [_spelt(token.get("token")) for token in tokens]
    text = "".join(texts)
    start = max(text.rfind("</think>") + len("</think>") if "</think>" in text else 0, 0)
    ends = [match.end() for match in HEADER.finditer(text, start) if match.group(1).lower() == "option"]
    start, position = ends[-1] if ends else start, 0
    for token, spelling in zip(tokens, texts, strict=True):
        if position >= start and spelling.strip(_AROUND):
            return token
        position += len(spelling)
    return None


def _letter(token: Any, letters: Sequence[str]) -> str | None:
    text = _spelt(token).strip(_AROUND)
    if len(text) != 1 or not text.isascii():
        return None
    return next((letter for letter in (text, text.upper()) if letter in letters), None)


def _spelt(token: Any) -> str:
    return token.translate(_SPACES) if isinstance(token, str) else ""


def _clipped(logprob: Any) -> float:
    if isinstance(logprob, bool) or not isinstance(logprob, int | float) or math.isnan(logprob):
        return LOWEST
    return float(min(0.0, max(LOWEST, logprob)))


def _floor(seen: Mapping[str, float]) -> float:
    """Below what is known of a token outside the top-k: at most the least seen, and the mass left over."""
    left = 1.0 - math.fsum(math.exp(logprob) for logprob in seen.values())
    bound = min(min(seen.values()), math.log(left) if left > 0 else LOWEST)
    return max(LOWEST, bound) - MARGIN


def _log_sum(logprobs: Sequence[float]) -> float:
    highest = max(logprobs)
    return min(0.0, highest + math.log(math.fsum(math.exp(value - highest) for value in logprobs)))
