"""Writes cards without a language model, from the training rows that a worker won and lost.

A card names what the worker is asked best: words and looks of requests (`words.common`) that stand where the worker's
smoothed utility is the best or nearly so, and not where another's is better. They are chosen one by one, each for what
it adds to the rows already covered (greedy weighted cover: Nemhauser, Wolsey & Fisher 1978, with losses), and written
as a plain sentence, in some styles with the worker's smoothed rate on such requests. Nothing is assumed of the router
but that it can read. Few terms do better than many on wordings that were not seen: the search tries both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from harness.optimise.candidate import Candidate, worker_of
from harness.optimise.guard import CARD_CHARS, Guard
from harness.optimise.proposer import Draft, Lesson
from harness.optimise.rows import Floats
from harness.optimise.teacher import Teacher
from harness.optimise.words import common

COVERED = 0.3  # what is left of a row's weight for the next term, once a term of the card has it
RATE_PRIOR = 5.0  # rows' worth of the worker's mean in a stated rate
ADDED, DROPPED, BOOST = 4, 2, 3.0


@dataclass(frozen=True)
class Style:
    """How a card is written.

    `terms` at most; `precision` is how much a row that the card should not attract weighs; of two workers that are
    nearer than `tolerance`, both may claim a request (smoothed utilities are no surer than that where workers differ
    much); `rates` are said or not.
    """

    terms: int = 8
    precision: float = 0.5
    tolerance: float = 0.1
    rates: bool = False

    def __str__(self) -> str:
        said = f"{self.terms} terms, precision {self.precision:g}, tolerance {self.tolerance:g}"
        return f"{said}, rates" if self.rates else said


STYLES = (
    Style(),
    Style(12),
    Style(16),
    Style(12, 1.0),
    Style(12, rates=True),
    Style(8, tolerance=0.02),
    Style(16, tolerance=0.02),
)
"""In order of trust: a later style has to show that it is better."""


class CardWriter:
    """The proposer without a language model. Deterministic: the same rows give the same cards."""

    def __init__(self, teacher: Teacher, guard: Guard, style: Style = STYLES[0]) -> None:
        self._teacher = teacher
        self._guard = guard
        self._style = style
        self._workers = teacher.rows.workers
        self._place = {row.id: index for index, row in enumerate(teacher.rows.rows)}
        self._written: dict[str, tuple[list[str], Style]] = {}

    def drafts(self, styles: Sequence[Style] = STYLES) -> list[Draft]:
        """A whole set of cards in each style; sets that came out alike once."""
        made: dict[tuple[tuple[str, str], ...], Draft] = {}
        for style in styles:
            cards = {name: self.card(name, style) for name in self._workers}
            made.setdefault(tuple(cards.items()), Draft(cards, f"written: {style}"))
        return list(made.values())

    def card(self, worker: str, style: Style | None = None) -> str:
        """The card of one worker from all training rows."""
        style = style or self._style
        gains = self._gains(worker, style, np.ones(len(self._place)))
        return self._sentence(worker, self._cover(worker, gains, [], style, style.terms), style)

    def components(self, candidate: Candidate) -> list[str]:
        return [name for name in candidate.components if worker_of(name) is not None]

    def propose(self, candidate: Candidate, component: str, lessons: Sequence[Lesson]) -> str | None:
        """The card with terms put in and taken out where the lessons, and rows like theirs, say so."""
        worker = worker_of(component)
        if worker is None or not lessons:
            return None
        now = candidate.cards[worker]
        terms, style = self._written.get(now, ([], self._style))
        gains = self._gains(worker, style, self._weights(lessons))
        kept = self._without_worst(worker, terms, gains)
        limit = min(len(kept) + ADDED, 2 * style.terms) if terms else style.terms
        text = self._sentence(worker, self._cover(worker, gains, kept, style, limit), style)
        return None if text == now else text

    @cached_property
    def _terms(self) -> Mapping[str, np.ndarray]:
        return {term: np.array(rows) for term, rows in common(self._teacher.rows).items()}

    @cached_property
    def _behind(self) -> Mapping[str, Floats]:
        """By term and worker, how far its mean smoothed utility is behind the best one's where the term stands."""
        means = {term: self._teacher.values[rows].mean(axis=0) for term, rows in self._terms.items()}
        return {term: mean.max() - mean for term, mean in means.items()}

    @cached_property
    def _sayable(self) -> Mapping[str, frozenset[str]]:
        """By worker, the terms that the guard lets its card say."""
        terms = tuple(self._terms)
        return {
            name: frozenset(term for term in terms if not self._guard.card_faults(name, term)) for name in self._workers
        }

    def _allowed(self, worker: str, style: Style) -> list[str]:
        """The terms where the worker is nearly the best on average, in a fixed order."""
        place, sayable = self._workers.index(worker), self._sayable[worker]
        return [term for term in self._terms if self._behind[term][place] <= style.tolerance and term in sayable]

    def _gains(self, worker: str, style: Style, weights: Floats) -> Floats:
        """By row, what it adds that a term of this card has it: the margin, losses by the style's precision."""
        margins = self._teacher.margins[:, self._workers.index(worker)] + style.tolerance
        gains: Floats = weights * np.where(margins > 0, margins, style.precision * margins)
        return gains

    def _cover(self, worker: str, gains: Floats, kept: Sequence[str], style: Style, limit: int) -> list[str]:
        chosen = list(kept)
        left = gains.copy()
        for term in chosen:
            _cover_rows(left, self._terms[term])
        open_terms = [term for term in self._allowed(worker, style) if term not in set(chosen)]
        while len(chosen) < limit and open_terms:
            best = max(open_terms, key=lambda term: float(left[self._terms[term]].sum()))
            if left[self._terms[best]].sum() <= 0:
                break
            chosen.append(best)
            open_terms.remove(best)
            _cover_rows(left, self._terms[best])
        return chosen

    def _without_worst(self, worker: str, terms: Sequence[str], gains: Floats) -> list[str]:
        worth = {term: float(gains[self._terms[term]].sum()) for term in terms}
        worst = sorted((term for term in terms if worth[term] < 0), key=lambda term: worth[term])[:DROPPED]
        return [term for term in terms if term not in worst]

    def _weights(self, lessons: Sequence[Lesson]) -> Floats:
        """1, and more for rows like those where routing lost something."""
        weights = np.ones(len(self._place))
        for lesson in lessons:
            place = self._place.get(lesson.row)
            if place is not None and lesson.lost > 0:
                weights[place] += BOOST
                weights += BOOST * np.maximum(self._teacher.similarity[place], 0.0)
        return weights

    def _sentence(self, worker: str, terms: Sequence[str], style: Style) -> str:
        """The card: terms that often stand together side by side, the weakest left out where it grows too long."""
        terms = list(terms)
        while True:
            text = self._said(worker, terms, style)
            if not terms or (len(text) <= CARD_CHARS and not self._guard.card_faults(worker, text)):
                self._written.setdefault(text, (terms, style))
                return text
            terms.pop()

    def _said(self, worker: str, terms: Sequence[str], style: Style) -> str:
        if not terms:
            return "No requests are known on which it does better than others."
        text = f"Strong at requests about {_listed(self._arranged(terms))}."
        return f"{text} {self._rate(worker, terms)}" if style.rates else text

    def _arranged(self, terms: Sequence[str]) -> list[str]:
        """Terms in an order where each stands beside one that it shares rows with, as far as that goes."""
        left, order = list(terms[1:]), [terms[0]]
        rows = {term: set(self._terms[term].tolist()) for term in terms}
        while left:
            last = rows[order[-1]]
            order.append(max(left, key=lambda term: len(last & rows[term]) / len(last | rows[term])))
            left.remove(order[-1])
        return order

    def _rate(self, worker: str, terms: Sequence[str]) -> str:
        at = np.unique(np.concatenate([self._terms[term] for term in terms]))
        utilities, place = self._teacher.rows.rewards, self._workers.index(worker)
        means = utilities.mean(axis=0)
        rates = (utilities[at].sum(axis=0) + RATE_PRIOR * means) / (len(at) + RATE_PRIOR)
        elsewhere = np.delete(rates, place).mean() if len(rates) > 1 else rates[place]
        return f"Scores {rates[place]:.0%} there, where the average is {elsewhere:.0%}, and {means[place]:.0%} overall."


def _cover_rows(left: Floats, rows: np.ndarray) -> None:
    left[rows] = np.where(left[rows] > 0, COVERED * left[rows], left[rows])


def _listed(terms: Sequence[str]) -> str:
    return terms[0] if len(terms) == 1 else f"{', '.join(terms[:-1])} and {terms[-1]}"
