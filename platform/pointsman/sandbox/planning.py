"""The stand-in router LLM as a conductor and as a chooser of roles: from the text of the request and the cards.

It splits a request where anyone would see that it asks for several things, gives each part to the worker whose card
overlaps most with it, and asks for the thinker where there are several parts. It stands for a small LLM; no figure made
with it says how well a real one plans.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from pointsman.sandbox.overlap import overlaps
from pointsman.sandbox.parts import Parts, refers, split

MAX_STEPS = 5

_TAKEN = re.compile(r"Roles taken so far: ([^.\n]*)")
_WANTED = re.compile(r"^The worker is wanted as (\w+)")
_SURE = 3.0
"""How much more the role that fits is worth than the others, on the scale of an overlap."""


@dataclass(frozen=True)
class Step:
    """`access`: positions of earlier steps; `all` where it puts everything together."""

    letter: str
    subtask: str
    access: str | list[int]


def plan(request: str, letters: Sequence[str], cards: Sequence[str]) -> list[Step]:
    """A step per part, and one that puts the answers together where the parts stand beside each other."""
    parts = split(request)
    if not parts.several or len(parts.parts) + bool(parts.closing) > MAX_STEPS:
        return [Step(_best(request, letters, cards), request, "none")]
    steps = [
        Step(_best(part, letters, cards), part, _reads(part, number)) for number, part in enumerate(parts.parts, 1)
    ]
    if parts.closing is not None:
        steps.append(Step(_best(parts.closing, letters, cards), parts.closing, "all"))
    return steps


def plan_text(steps: Sequence[Step]) -> str:
    """The plan in the form that the prompt asks for."""
    lists = (
        ("workers", [step.letter for step in steps]),
        ("subtasks", [step.subtask for step in steps]),
        ("access", [step.access for step in steps]),
    )
    lines = "\n".join(f"{label} = {json.dumps(values, ensure_ascii=False)}" for label, values in lists)
    return f"[[ ## plan ## ]]\n{lines}\n\n[[ ## completed ## ]]"


def role_scores(request: str, context: str, roles: Sequence[str]) -> list[float]:
    """A score for every role: think first where there are several parts, solve, then have it verified."""
    taken = _TAKEN.search(context)
    before = [word.strip() for word in taken[1].split(",")] if taken else []
    wanted = _wanted(before, several=split(request).several)
    return [_SURE if role.split(":")[0].strip() == wanted else 0.0 for role in roles]


def scored_for_role(request: str, context: str, cards: Sequence[str]) -> list[float] | None:
    """Where a worker is wanted for a role in a request of several parts: by the part that it would do."""
    wanted, parts = _WANTED.search(context), split(request)
    if wanted is None or not parts.several:
        return None
    return overlaps(_part_for(wanted[1], context, parts), cards)


def _wanted(before: Sequence[str], *, several: bool) -> str:
    if before[-1:] == ["solver"]:
        return "verifier"
    if several and "thinker" not in before:
        return "thinker"
    return "solver"


def _part_for(role: str, context: str, parts: Parts) -> str:
    taken = _TAKEN.search(context)
    if role == "thinker":
        return parts.parts[0]
    if role == "solver" and taken is not None and "thinker" in taken[1]:
        return "\n".join(parts.parts[1:])
    return "\n".join(parts.parts)


def _best(text: str, letters: Sequence[str], cards: Sequence[str]) -> str:
    scores = overlaps(text, cards)
    return letters[scores.index(max(scores))]


def _reads(part: str, number: int) -> str | list[int]:
    return [number - 1] if number > 1 and refers(part) else "none"
