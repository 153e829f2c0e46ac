"""From a router version's configuration, as it stands in the log, to the prompted router that serves it.

A version owns its cards, instructions and template. The configuration is what `PromptedRouter` itself writes
(`version.config`), so a router built from it has the same id. A template that is not the one that ships stands whole in
the configuration, under `template_body`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, get_args

from harness.routing.prompted import Lm, PromptedRouter, Scoring
from harness.routing.template import Template, default_template, template_of
from pointsman.errors import UserError
from pointsman.pool import Price


def prompted_router(
    config: Mapping[str, Any],
    lm: Lm,
    *,
    deadline: float,
    price: Price | None = None,
    parent_id: str | None = None,
    max_top_logprobs: int = 20,
) -> PromptedRouter:
    """The router of `config`; raises `UserError` naming what it lacks. `lm` must reach the model it names."""
    cards, instructions = config.get("cards"), config.get("instructions")
    scoring: Any = config.get("scoring")
    if not isinstance(cards, Mapping) or not all(isinstance(card, str) for card in cards.values()):
        raise UserError("router version: expected cards, a text per worker")
    if (
        not isinstance(instructions, str)
        or scoring not in get_args(Scoring)
        or not isinstance(config.get("model"), str)
    ):
        raise UserError("router version: expected instructions, scoring and model of a prompted router")
    return PromptedRouter(
        version_template(config),
        lm,
        model=config["model"],
        cards=cards,
        deadline=deadline,
        instructions=instructions,
        scoring=scoring,
        price=price,
        base_url=config.get("base_url"),
        max_top_logprobs=max_top_logprobs,
        parent_id=parent_id,
        template_body=config.get("template_body"),
    )


def version_template(config: Mapping[str, Any]) -> Template:
    """The template that a version names: the one that ships, or its own."""
    body, named = config.get("template_body"), config.get("template")
    template = _shipped() if body is None else template_of(body, "router version: template_body")
    if template.hash != named:
        raise UserError(
            f"router version: its template ({str(named)[:12]}) is not known here: it was made by another release"
        )
    return template


@lru_cache(maxsize=1)
def _shipped() -> Template:
    return default_template()
