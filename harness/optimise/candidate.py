"""A candidate: one whole configuration of the prompted harness, with where it came from.

Cards, instructions, demonstrations, scoring mode and chain. Its texts are components by name
(`card:WORKER`, `instructions`), so that a search can change one and leave the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from harness.routing.prompted import Scoring
from pointsman.hashing import content_hash
from pointsman.words import RouterKind

INSTRUCTIONS = "instructions"
CARD = "card:"
CHAIN: tuple[RouterKind, ...] = ("harness", "default")


@dataclass(frozen=True)
class Demonstration:
    """A request and the worker that was best on it, shown to the router LLM as an example."""

    request: str
    worker: str


@dataclass(frozen=True)
class Candidate:
    """Immutable. `parent` is the id of the candidate it was made from, `origin` says how."""

    cards: Mapping[str, str]
    instructions: str
    scoring: Scoring = "auto"
    demonstrations: tuple[Demonstration, ...] = ()
    chain: tuple[RouterKind, ...] = CHAIN
    parent: str | None = None
    origin: str = "start"

    @property
    def config(self) -> dict[str, Any]:
        """What decides how it routes; lineage is no part of it."""
        return {
            "cards": dict(self.cards),
            "instructions": self.instructions,
            "scoring": self.scoring,
            "demonstrations": [asdict(one) for one in self.demonstrations],
            "chain": list(self.chain),
        }

    @cached_property
    def id(self) -> str:
        """Of the configuration: two ways to the same texts are one candidate."""
        return content_hash(self.config)[:16]

    @property
    def components(self) -> dict[str, str]:
        """Its texts by component name."""
        return {INSTRUCTIONS: self.instructions, **{CARD + name: text for name, text in self.cards.items()}}

    def with_components(self, texts: Mapping[str, str], origin: str) -> Candidate:
        """A child with these texts in place of its own."""
        cards = {name: texts.get(CARD + name, card) for name, card in self.cards.items()}
        instructions = texts.get(INSTRUCTIONS, self.instructions)
        return replace(self, cards=cards, instructions=instructions, parent=self.id, origin=origin)

    def changed(self, origin: str, **parts: Any) -> Candidate:
        """A child with other parts (`scoring`, `demonstrations`, `chain`)."""
        return replace(self, parent=self.id, origin=origin, **parts)


def worker_of(component: str) -> str | None:
    """The worker whose card a component is; None for the instructions."""
    return component.removeprefix(CARD) if component.startswith(CARD) else None
