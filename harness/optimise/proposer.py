"""What a proposer is: from a component's present text and lessons to a better text.

Two exist: `writer.CardWriter` needs no language model, `reflection.ReflectingProposer` asks one. Both see training
rows alone, and both texts pass the guard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from harness.optimise.candidate import Candidate


@dataclass(frozen=True)
class Lesson:
    """One training row that a component is responsible for, and how that went.

    `row` is its id. `own` and `best` are smoothed utilities of the card's worker and of the best one; `chosen` says
    whether the worker was chosen, `gold` whether it should have been. For the instructions, which are responsible
    for every row, `own` is what the chosen worker earns. `feedback` says it in words.
    """

    row: str
    request: str
    chosen: bool
    gold: bool
    own: float
    best: float
    feedback: str
    comments: tuple[str, ...] = ()

    @property
    def lost(self) -> float:
        """Utility lost by the way the row was routed."""
        return self.best - self.own if self.chosen else (self.best - self.own if self.gold else 0.0)


@dataclass(frozen=True)
class Draft:
    """A whole set of cards, and how it was written."""

    cards: dict[str, str]
    how: str


class Proposer(Protocol):
    """Raises nothing for a text it cannot better: it gives None."""

    def components(self, candidate: Candidate) -> list[str]:
        """The components it can write."""
        ...

    def propose(self, candidate: Candidate, component: str, lessons: Sequence[Lesson]) -> str | None:
        """Another text for `component`; None where it has none to offer."""
        ...
