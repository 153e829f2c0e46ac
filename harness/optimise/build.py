"""The router that would serve a candidate: what the search runs, and what a release writes as a version."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from harness.optimise.candidate import Candidate, Demonstration
from harness.routing.options import LETTERS
from harness.routing.prompted import Lm, PromptedRouter
from harness.routing.slots import REQUEST_CHARS, bounded, quoted, workers_slot
from harness.routing.template import MODES, Mode, default_template, template_of
from pointsman.pool import Price


@dataclass(frozen=True)
class RouterLlm:
    """The router LLM that candidates are tried with; a version of theirs serves with the same."""

    model: str
    base_url: str | None = None
    price: Price | None = None
    deadline: float = 30.0


def router_of(candidate: Candidate, llm: RouterLlm, lm: Lm, parent_id: str | None = None) -> PromptedRouter:
    """The prompted router of a candidate. With demonstrations its template is compiled by DSPy's adapter."""
    body = _compiled(candidate) if candidate.demonstrations else None
    return PromptedRouter(
        default_template() if body is None else template_of(body),
        lm,
        model=llm.model,
        cards=candidate.cards,
        deadline=llm.deadline,
        instructions=candidate.instructions,
        scoring=candidate.scoring,
        price=llm.price,
        base_url=llm.base_url,
        parent_id=parent_id,
        template_body=body,
    )


def _compiled(candidate: Candidate) -> dict[str, Any]:
    from harness.optimise.compile import compile_default

    return compile_default(
        demos={mode: [_demo(candidate, one, mode) for one in candidate.demonstrations] for mode in MODES}
    )


def _demo(candidate: Candidate, shown: Demonstration, mode: Mode) -> dict[str, str]:
    """An example in the program's fields, with the candidate's own cards as its options."""
    names = dict(zip(LETTERS, candidate.cards, strict=False))
    answers: dict[Mode, str] = {
        "option": next(letter for letter, name in names.items() if name == shown.worker),
        "scores": json.dumps({letter: 100 if name == shown.worker else 0 for letter, name in names.items()}),
    }
    return {
        "request": quoted(bounded(shown.request, REQUEST_CHARS)),
        "context": quoted(""),
        "workers": workers_slot({letter: candidate.cards[name] for letter, name in names.items()}),
        mode: answers[mode],
    }
