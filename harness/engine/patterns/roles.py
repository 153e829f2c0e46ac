"""Trinity's roles: what each is told, and what each sees.

    solver    the request, and the thinker's newest suggestion if there is one since the last solver
    thinker   the request and the latest answer; gives a suggestion and may name the next role
    verifier  the request and the latest answer; begins with its verdict

As in Trinity (arXiv 2512.04695 §3.2, and its authors' code): no role sees the verifier's words, unless the pattern
gives them to the solver (`feedback`, an evaluator–optimiser). The wording is our own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from harness.engine.context import Block, passed_on, with_blocks
from harness.engine.request import Message
from harness.routing.parse import visible_text

Part = Literal["thinker", "solver", "verifier"]

THINKER = """\
You are the thinker of a team. Work out what the request takes, look at the latest answer if there is one, and help \
whoever answers next: do the part that you are surest of and say what is left. Do not write the final answer.
Reply in this form:
Suggestion: your suggestion, in one paragraph
Next role: solver or verifier"""
VERIFIER = """\
You are the verifier of a team. Judge the latest answer to the request critically: check it by your own work.
Start your reply with the one word ACCEPT if it is right and complete, else with REVISE. Then say why."""
SCORER = """\
You are the verifier of a team. Judge the latest answer to the request critically: check it by your own work.
Start your reply with its score from 0 (wrong) to 1 (right and complete), as in "Score: 0.7". Then say what is wrong."""
SOLVER = "You are the solver of a team: answer the request. What the team has to say stands above."

ABOUT: dict[Part, str] = {
    "thinker": "works out what the request takes and suggests how to go on, without answering it",
    "solver": "writes an answer",
    "verifier": "judges the newest answer: accept, or revise",
}
_NEXT = re.compile(r"^[*_ ]*next role[*_ ]*[:=][*_` ]*(\w+)", re.IGNORECASE | re.MULTILINE)
_SUGGESTED = re.compile(
    r"^[*_ ]*suggestion[*_ ]*[:=][*_ ]*\s*(.+?)(?=^[*_ ]*next role|\Z)", re.IGNORECASE | re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Role:
    """A role by its own name. `prompt` stands in place of the part's own words; `workers` empty: any may take it."""

    name: str
    part: Part
    prompt: str | None = None
    workers: tuple[str, ...] = ()

    @property
    def about(self) -> str:
        if self.prompt is None or self.part == self.name:
            return ABOUT[self.part]
        return f"{ABOUT[self.part]} ({self.prompt.splitlines()[0][:120]})"


TRIO = (Role("thinker", "thinker"), Role("solver", "solver"), Role("verifier", "verifier"))


@dataclass(frozen=True)
class Scene:
    """What there is to show when a turn begins. `critique` only where the pattern gives it to the solver."""

    latest: str | None = None
    suggestion: str | None = None
    critique: str | None = None
    tools: tuple[Block, ...] = ()


def messages_for(role: Role, messages: list[Message], scene: Scene, *, scored: bool) -> list[Message]:
    """What the worker in `role` is sent."""
    if role.part == "solver":
        return with_blocks(messages, _solver_blocks(role, scene))
    told = role.prompt or (THINKER if role.part == "thinker" else SCORER if scored else VERIFIER)
    latest = [("Latest answer", passed_on(scene.latest))] if scene.latest is not None else []
    return with_blocks(messages, [*scene.tools, *latest, ("Your role", told)])


def _solver_blocks(role: Role, scene: Scene) -> list[Block]:
    blocks = list(scene.tools)
    if scene.suggestion:
        blocks.append(("Suggestion", passed_on(scene.suggestion)))
    if scene.critique is not None and scene.latest is not None:
        blocks += [
            ("Latest answer", passed_on(scene.latest)),
            ("What was found wrong with it", passed_on(scene.critique)),
        ]
    if blocks or role.prompt:
        blocks.append(("Your role", role.prompt or SOLVER))
    return blocks


def suggestion_of(reply: str | None) -> tuple[str, Part | None]:
    """A thinker's suggestion, and the role that it wants next (solver or verifier), if it names one."""
    text = visible_text(reply)
    found, named = _SUGGESTED.search(text), _NEXT.search(text)
    suggestion = found[1].strip() if found else _NEXT.split(text)[0].strip()
    word = named[1].lower() if named else ""
    return suggestion, "solver" if word == "solver" else "verifier" if word == "verifier" else None
