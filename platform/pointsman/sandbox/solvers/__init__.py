"""What the sandbox's workers can do: read a prompt's text, recognise the question, compute the answer.

Written apart from the exam (`sandbox.families`): nothing here sees a task, its gold or its verifier. A
worker's mistakes are made afterwards, from a right answer (`sandbox.mistakes`).
"""

from __future__ import annotations

from collections.abc import Mapping

from pointsman.sandbox.solvers import (
    arithmetic,
    codes,
    dates,
    extraction,
    logic,
    lookup,
    ordering,
    percentages,
    stories,
    text,
    units,
)
from pointsman.sandbox.solvers.base import Rule, Solved

__all__ = ["Solved", "solve"]

_RULES: Mapping[str, tuple[Rule, ...]] = {
    "extraction": extraction.RULES,
    "lookup": lookup.RULES,
    "arithmetic": arithmetic.RULES,
    "percentages": percentages.RULES,
    "dates": dates.RULES,
    "units": units.RULES,
    "text": text.RULES,
    "ordering": ordering.RULES,
    "logic": logic.RULES,
    "codes": codes.RULES,
    "stories": stories.RULES,
}

MAX_CHARS = 4_000


def solve(prompt: str) -> Solved | None:
    """The answer to the question in `prompt`, None where it holds none that a worker knows."""
    prompt = prompt.strip()[:MAX_CHARS]
    for skill, rules in _RULES.items():
        for known in rules:
            if match := known.pattern.search(prompt):
                try:
                    answer, form, *others = known.solve(match)
                except (KeyError, ValueError, IndexError, ZeroDivisionError, StopIteration, OverflowError):
                    continue  # the wording fits, what it asks about is not there
                return Solved(skill, answer, form, others[0] if others else ())
    return None
