"""The rule router: ordered conditions on words, length and tags; the first that holds decides."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from harness.routing.base import Ask, RouterFailed, RouterVersion, Scored
from harness.routing.remembered import Remembered
from pointsman.config.model import RuleConfig
from pointsman.pool import Worker
from pointsman.words import RouterKind

DEADLINE = 0.05
MAX_CHARS = 100_000  # words are looked for in this much of an ask
# Scripts written without spaces: there a word is one wherever it stands. (first, last) code points.
_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x3400, 0x9FFF),  # Han
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One condition: everything that is given must hold; `words` are folded."""

    worker: str
    words: tuple[str, ...]
    min_chars: int
    max_chars: int | None
    tags: frozenset[str]

    @classmethod
    def of(cls, config: RuleConfig) -> Rule:
        words = tuple(folded for word in config.words if (folded := fold(word).strip()))
        return cls(config.worker, words, config.min_chars or 0, config.max_chars, frozenset(config.tags))

    def holds(self, ask: Ask, folded: str) -> bool:
        """Whether the rule applies; `folded` is the ask's text as `fold` gives it."""
        length = len(ask.text)
        if length < self.min_chars or (self.max_chars is not None and length > self.max_chars):
            return False
        if self.tags and not self.tags <= ask.tags:
            return False
        return not self.words or any(word in folded and has_word(folded, word) for word in self.words)


class RuleRouter:
    """Gives 1 to the worker of the first rule that holds and whose worker is offered, 0 to the others."""

    kind: RouterKind = "rule"
    deadline = DEADLINE

    def __init__(self, rules: Sequence[RuleConfig], parent_id: str | None = None) -> None:
        self._rules = tuple(Rule.of(rule) for rule in rules)
        self._offered = Remembered(self._score)
        self._reads_words = any(rule.words for rule in self._rules)
        config = {"rules": [rule.model_dump(mode="json") for rule in rules]}
        self.version = RouterVersion("rule", config, parent_id)

    async def score(self, ask: Ask, workers: tuple[Worker, ...], seed: int) -> Scored:
        return self.score_now(ask, workers, seed)

    def score_now(self, ask: Ask, workers: tuple[Worker, ...], seed: int) -> Scored:
        """The same without suspending. Raises `RouterFailed` where no rule decides."""
        folded = fold(ask.text[:MAX_CHARS]) if self._reads_words else ""
        for rule, scored in self._offered(workers):
            if rule.holds(ask, folded):
                return scored
        raise RouterFailed("no_rule_matched")

    def _score(self, workers: tuple[Worker, ...]) -> list[tuple[Rule, Scored]]:
        """The rules whose worker is offered, and what each says where it holds."""
        names = {worker.name for worker in workers}
        return [(rule, Scored.of_one(rule.worker, workers)) for rule in self._rules if rule.worker in names]


def fold(text: str) -> str:
    """Text in which letters compare without case, and composed or not alike."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def has_word(text: str, word: str) -> bool:
    """Whether `word` stands in `text` as a whole word, both folded."""
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        if not _joined(text[start - 1 : start], word[0]) and not _joined(text[end : end + 1], word[-1]):
            return True
        start = text.find(word, start + 1)
    return False


def _joined(outer: str, edge: str) -> bool:
    """Whether the character beside a word belongs to it, so that the word is only part of a longer one."""
    if not outer or not (outer.isalnum() or outer == "_" or unicodedata.category(outer)[0] == "M"):
        return False
    return not (_unspaced(edge) or _unspaced(outer))


def _unspaced(char: str) -> bool:
    code = ord(char)
    return code >= _UNSPACED[0][0] and any(first <= code <= last for first, last in _UNSPACED)
