"""Reading what a team's prompt puts around a request: headings, and what stands under them.

A worker obeys what it is sent: a part of a task, a role, what others found. A prompt without such headings is a
request and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Role = Literal["thinker", "solver", "verifier", "judge"]

_HEADING = re.compile(
    r"^### (Your part|Your subtask|Your role|Suggestion|Latest answer|What tools gave before|"
    r"What was found wrong with it|Result of (?:round \d+, )?step \d+|Your sidekick|What you are good at|"
    r"Why you were given this|Answer [A-Z])[ \t]*$",
    re.MULTILINE,
)
_STEP = re.compile(r"step (\d+)$")
_ANSWER = re.compile(r"answer\b[*_` ]{0,4}:[*_` ]{0,4}(.+)", re.IGNORECASE)
_FIRST_PART = re.compile(r"first part: it comes to (.+?)\. (?:Then|What is left)", re.IGNORECASE)


@dataclass(frozen=True)
class Instructions:
    """What a worker is asked. `results` are others' outputs by step; `found` what a suggestion gives for part one.

    `answers` are those that a judge is shown, by letter; `own` is what a worker is told of itself.
    """

    request: str
    subtask: str | None = None
    role: Role | None = None
    scored: bool = False
    results: Mapping[int, str] = field(default_factory=dict)
    latest: str | None = None
    found: str | None = None
    answers: Mapping[str, str] = field(default_factory=dict)
    own: str | None = None

    @property
    def plain(self) -> bool:
        return self.subtask is None and self.role in (None, "solver") and not self.results and self.found is None


def read(prompt: str) -> Instructions:
    """The instructions in a prompt's text. Of headings that come twice the later one counts."""
    heads = list(_HEADING.finditer(prompt))
    if not heads:
        return Instructions(prompt)
    ends = [*(head.start() for head in heads[1:]), len(prompt)]
    under = {head[1]: prompt[head.end() : end].strip() for head, end in zip(heads, ends, strict=True)}
    told = under.get("Your role", "")
    suggestion = _FIRST_PART.search(under.get("Suggestion", ""))
    answers = {name[-1]: text for name, text in under.items() if name.startswith("Answer ")}
    return Instructions(
        request=prompt[: heads[0].start()].strip(),
        subtask=under.get("Your subtask"),
        role="judge" if answers else _role(told),
        scored="score" in told.casefold(),
        results={int(match[1]): text for name, text in under.items() if (match := _STEP.search(name))},
        latest=under.get("Latest answer"),
        found=suggestion[1].strip() if suggestion else None,
        answers=answers,
        own=under.get("What you are good at"),
    )


def answer_in(reply: str) -> str:
    """What a reply gives as its answer: behind the last "Answer:", else its last line."""
    marked = _ANSWER.findall(reply)
    lines = [line for line in reply.splitlines() if line.strip()]
    return (marked[-1] if marked else lines[-1] if lines else "").strip(" *_`\"'")


def _role(told: str) -> Role | None:
    for role in ("thinker", "verifier", "solver"):
        if re.search(rf"\b{role}\b", told.split("\n")[0], re.IGNORECASE):
            return role
    if re.search(r"\bACCEPT\b.*\bREVISE\b", told, re.DOTALL):
        return "verifier"
    return "thinker" if "next role" in told.casefold() else "solver" if told else None
