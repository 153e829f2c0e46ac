"""What a card and the instructions may say. Every proposal passes here, whoever wrote it.

A card is shown to the router LLM with every request, so what gets into one speaks to it each time. The rules:
bounded length, one paragraph, no address, no other worker's name, no run of eight words from a logged request or
comment, nothing that looks like a secret, no word to the router. They bound what a poisoned log can do; whether a
card is any good is for the certificate to say.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.optimise.rows import Rows

CARD_CHARS = 600
INSTRUCTIONS_CHARS = 2_000
RUN = 8
RARE_BELOW = 3

_URL = re.compile(r"\b(?:https?|ftp|file|data|javascript):|\bwww\.|\b[\w-]+\.(?:com|org|net|io|ai|dev|example)\b", re.I)
_TO_THE_ROUTER = re.compile(
    r"\b(?:ignore|disregard|override|forget)\b.{0,40}\b(?:instruction|card|description|option|worker|above|previous|other)"
    r"|\b(?:always|never|only|must|please|should)\s+(?:be\s+)?(?:choose|chosen|select|selected|pick|picked|route|routed|use)\b"
    r"|\b(?:choose|select|pick|route to|prefer)\s+(?:me|this|it|the above|option|worker|letter)\b"
    r"|\byou (?:must|should|are|have to|will)\b|\boption [A-Za-z]\b|\b(?:system|developer) (?:prompt|message)\b"
    r"|\b(?:the|dear|attention|note to(?: the)?) router\b|\[\[|\]\]|<\|",
    re.I | re.S,
)
_TOKEN = re.compile(r"[^\s,;:()\"'“”‘’.!?]+")
_WORD = re.compile(r"\w+")
_SECRET = re.compile(
    r"(?=\S*\d)(?=\S*[A-Za-z])[A-Za-z0-9_+/=-]{10,}$|^(?:sk|pk|pm|ghp|xox[a-z]|AKIA|eyJ)[-_]?\w{6,}|^\d{6,}$|^[A-Za-z0-9+/_=-]{28,}$"
)
MASK = "[left out]"


@dataclass(frozen=True)
class Guard:
    """The rules for one pool and one log. `texts` are what was logged: (episode, text) of requests and comments."""

    workers: tuple[str, ...]
    texts: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, rows: Iterable[Rows], workers: Sequence[str]) -> Guard:
        """The rules for proposals made from these rows."""
        texts = []
        for part in rows:
            for row in part.rows:
                texts += [(row.episode, text) for text in (row.ask.text, row.ask.context) if text]
                texts += [(row.episode, comment.text) for comment in row.comments]
        return cls(tuple(workers), tuple(texts))

    def card_faults(self, worker: str, text: str) -> list[str]:
        """Why `text` cannot be the card of `worker`; empty where it can."""
        faults = self._faults(text, CARD_CHARS)
        if "\n" in text.strip():
            faults.append("more than one paragraph")
        if _TO_THE_ROUTER.search(_folded(text)):
            faults.append("speaks to the router")
        others = [name for name in self.workers if name != worker and _names(text, name)]
        return faults + [f"names another worker ({name})" for name in others]

    def instruction_faults(self, text: str) -> list[str]:
        """Why `text` cannot be the instructions."""
        named = [name for name in self.workers if _names(text, name)]
        return self._faults(text, INSTRUCTIONS_CHARS) + [f"names a worker ({name})" for name in named]

    def masked(self, text: str) -> str:
        """`text` with what looks like a secret, or is an odd token of few episodes, left out: for reflection."""
        return _TOKEN.sub(lambda found: MASK if self._secret(found[0]) else found[0], text)

    def _faults(self, text: str, limit: int) -> list[str]:
        faults = []
        if not text.strip():
            faults.append("is empty")
        if len(text) > limit:
            faults.append(f"has {len(text)} characters, at most {limit} are allowed")
        if _URL.search(text):
            faults.append("has an address")
        if any(unicodedata.category(char) in ("Cc", "Cf", "Co", "Cn") for char in text.replace("\n", " ")):
            faults.append("has invisible characters")
        if any(run in self._runs for run in _runs_of(text)):
            faults.append(f"repeats {RUN} words of a logged text")
        if any(self._secret(token) for token in _TOKEN.findall(text)):
            faults.append("has something that looks like a secret")
        return faults

    def _secret(self, token: str) -> bool:
        """By its looks, or an odd token (digits, inner capitals, long) that few episodes have."""
        if _SECRET.search(token):
            return True
        odd = any(char.isdigit() for char in token) or token[1:] != token[1:].lower() or len(token) >= 14
        return odd and len(token) >= 5 and 0 < self._episodes[token.casefold()] < RARE_BELOW

    @cached_property
    def _runs(self) -> frozenset[int]:
        return frozenset(run for _, text in self.texts for run in _runs_of(text))

    @cached_property
    def _episodes(self) -> Counter[str]:
        """In how many episodes a token stands."""
        pairs = {(episode, token.casefold()) for episode, text in self.texts for token in _TOKEN.findall(text)}
        return Counter(token for _, token in pairs)


def _runs_of(text: str) -> Iterator[int]:
    words = _WORD.findall(_folded(text))
    return (hash(tuple(words[i : i + RUN])) for i in range(len(words) - RUN + 1))


def _names(text: str, name: str) -> bool:
    """Whether a text names a worker, however its parts are joined."""
    parts = [re.escape(part) for part in re.split(r"[\s._/-]+", _folded(name)) if part]
    return re.search(r"(?<!\w)" + r"[\s._/-]*".join(parts) + r"(?!\w)", _folded(text)) is not None


def _folded(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text)
    return "".join(char for char in plain if unicodedata.category(char) != "Cf").casefold()
