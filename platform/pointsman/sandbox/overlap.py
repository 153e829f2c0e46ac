"""How much a request and a card have in common: shared words, and shared topics of the lexicon.

Both count by their rarity among the cards shown, so what every card says decides nothing. Where request
and card share neither, the score is 0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import log

from pointsman.sandbox.lexicon import SHAPES, TOPICS_OF
from pointsman.sandbox.vocabulary import content_words

MAX_CHARS = 3_000
_WORD_WEIGHT = 0.5


def overlaps(request: str, cards: Sequence[str]) -> list[float]:
    """A score of 0 or more for every card, in the cards' order."""
    request = request[:MAX_CHARS]
    asked_words = content_words(request)
    asked_topics = _request_topics(request, asked_words)
    card_words = [content_words(card) for card in cards]
    card_topics = [_card_topics(words) for words in card_words]
    word_rarity = _rarity([dict.fromkeys(words, 1.0) for words in card_words])
    topic_rarity = _rarity(card_topics)
    return [
        _WORD_WEIGHT * sum(word_rarity[word] for word in asked_words & words)
        + sum(share * topics.get(topic, 0.0) * topic_rarity.get(topic, 0.0) for topic, share in asked_topics.items())
        for words, topics in zip(card_words, card_topics, strict=True)
    ]


def _request_topics(request: str, words: frozenset[str]) -> Mapping[str, float]:
    """How much a request is about each topic: from its words and its shape, summing to at most 1."""
    weights: defaultdict[str, float] = defaultdict(float)
    for word in words:
        for topic in TOPICS_OF.get(word, ()):
            weights[topic] += 1 / len(TOPICS_OF[word])
    for topic, shape, weight in SHAPES:
        if shape.search(request):
            weights[topic] += weight
    total = sum(weight**2 for weight in weights.values())
    return {topic: weight**2 / total for topic, weight in weights.items()} if total else {}


def _card_topics(words: frozenset[str]) -> Mapping[str, float]:
    """How surely a card claims each topic: more words, nearer to 1."""
    doubt: dict[str, float] = {}
    for word in words:
        topics = TOPICS_OF.get(word, ())
        for topic in topics:
            doubt[topic] = doubt.get(topic, 1.0) * (1 - 0.6 / len(topics))
    return {topic: 1 - left for topic, left in doubt.items()}


def _rarity(cards: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Inverse document frequency over the cards, weighted by how surely each claims the term."""
    held: dict[str, float] = {}
    for card in cards:
        for term, share in card.items():
            held[term] = held.get(term, 0.0) + share
    return {term: log(1 + len(cards) / (0.5 + share)) for term, share in held.items()}
