"""Which models are patterns: `pointsman-NAME` for every pattern that is built in or configured; a configured one by
its bare name too. `pointsman` itself is one worker per request, unless `[router] patterns` offers more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.engine.configured import BUILT_IN
from harness.gateway.decide import MODEL
from harness.gateway.generation import Generation
from harness.gateway.request import ChatRequest
from pointsman.config import Config
from pointsman.config.model import PatternConfig
from pointsman.words import Pattern

PREFIX = f"{MODEL}-"

CARDS: Mapping[Pattern, str] = {
    "single": "One worker answers alone: quick and cheap. For a request that one worker can do well.",
    "trinity": "Workers take turns: one thinks ahead, one solves, one checks the answer. For a request that is easy to "
    "get wrong and whose answer can be checked.",
    "workflow": "A plan of steps, each for the worker that does it best. For a request of several parts that need "
    "different skills.",
    "cascade": "A cheap worker answers first; where a check is not content, a dearer one does. For many simple "
    "requests with some hard ones among them.",
    "sidekick": "A strong worker leads and gives away what a cheap one can do. For long work with much routine in it.",
    "handoff": "One worker begins and hands the conversation to who fits better. For conversations that change.",
    "vote": "Several workers answer and the most frequent answer counts. For short answers that must be right.",
}
"""What routers read of a pattern that has no description of its own."""


def patterns_of(config: Config) -> Mapping[str, PatternConfig]:
    """All patterns that can be served, by name."""
    return {**BUILT_IN, **config.patterns}


def asked_for(request: ChatRequest, generation: Generation) -> tuple[str, ...]:
    """The patterns that may answer: one that the request names, several to choose from, or none: no team's matter."""
    config, model = generation.config, request.model
    if request.embeddings:
        return ()
    if model == MODEL:
        return tuple(config.router.patterns)
    if model in generation.pool.by_name:
        return ()
    if model in config.patterns:
        return (model,)
    name = model.removeprefix(PREFIX)
    return (name,) if name != model and name in patterns_of(config) else ()


def card_of(pattern: PatternConfig) -> str:
    return pattern.description or CARDS[pattern.pattern]


def models(config: Config) -> list[dict[str, Any]]:
    """The patterns as `GET /v1/models` lists them."""
    return [
        {
            "id": f"{PREFIX}{name}",
            "pointsman": {"kind": "pattern", "pattern": pattern.pattern, "description": card_of(pattern)},
        }
        for name, pattern in patterns_of(config).items()
        if name != "single" or name in config.patterns
    ]
