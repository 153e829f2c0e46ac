"""A router draws the pattern as it draws a worker: from the patterns' cards, by the prompted router's own template."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from harness.engine.deciders import Choice
from harness.engine.rows import chosen
from harness.gateway.generation import Generation
from harness.gateway.teams.names import card_of, patterns_of
from harness.routing.base import Ask
from harness.routing.chain import Chain
from harness.routing.default import DefaultRouter
from harness.routing.eligibility import Eligibility
from harness.routing.exploration import draw
from harness.routing.prompted import Lm, PromptedRouter
from harness.routing.template import default_template
from pointsman.pool import Price, Worker


class Drawn(NamedTuple):
    """The pattern, the root decision's columns, and the header's word for who scored."""

    name: str
    root: dict[str, Any]
    router: str


def pattern_chain(generation: Generation, lm: Lm) -> Chain:
    """The prompted router over patterns; where it fails the first one of the configuration is taken."""
    section = generation.config.router
    cards = {name: card_of(patterns_of(generation.config)[name]) for name in section.patterns}
    router = PromptedRouter(
        default_template(),
        lm,
        model=section.model or "",
        cards=cards,
        deadline=section.deadline,
        scoring=section.scoring,
        price=Price.of(section.price),
        base_url=section.base_url,
    )
    return Chain([router, DefaultRouter(section.patterns[0])], time.monotonic)


async def draw_pattern(
    chain: Chain, names: Sequence[str], generation: Generation, ask: Ask, epsilon: float, rng: random.Random
) -> Drawn:
    """Draws one of `names`; its probabilities are over patterns, so no estimate over workers reads them."""
    patterns = patterns_of(generation.config)
    offered = tuple(Worker(name, card_of(patterns[name]), name, ()) for name in names)
    decided = await chain.decide(ask, offered, rng.getrandbits(32))
    drawn = draw(decided.scored.scores, epsilon, rng)
    row = chosen(Choice(drawn, decided.scored.scores, decided), Eligibility(dict.fromkeys(names), False, offered))
    version = decided.router.version
    return Drawn(drawn.chosen, row, f"{version.kind}@{version.id}")
