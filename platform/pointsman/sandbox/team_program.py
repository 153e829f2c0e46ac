"""What a simulated worker does in a team: parts of a task, a thinker's and a verifier's role, long questions alone.

It sees the text of its messages and nothing else. It does a part rightly as often as its world says of the part's
skill. Here mistakes are mostly its own, as those of language models are: asked again, with another `seed` or by
another path, it makes the same one in `PERSISTENCE` of cases, so that asking one worker often is no cure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from random import Random

from pointsman.sandbox.instructions import Instructions, answer_in
from pointsman.sandbox.mistakes import mistaken
from pointsman.sandbox.parts import Parts, about, pointed, split
from pointsman.sandbox.solvers import solve
from pointsman.sandbox.solvers.checkable import mistaken_numbers, solve_checkable

PERSISTENCE = 0.85
"""The share of draws that another `seed` does not change."""
CHECKING = 0.97
"""How often what is easily checked is judged rightly, by anybody."""
CHECKABLE_SKILL = "arithmetic"


@dataclass(frozen=True)
class TeamProgram:
    """One worker answering one prompt. `salt` is the request's seed and the choice's number."""

    name: str
    seed: int
    success: Mapping[str, float]
    salt: str

    def role_reply(self, told: Instructions) -> str | None:
        """The whole reply of a thinker, verifier or judge; None for other parts."""
        if told.role == "thinker":
            return f"Suggestion: {self._thought(told)}\nNext role: solver"
        if told.role == "verifier":
            holds = self._judged(told)
            if told.scored:
                return f"Score: {0.9 if holds else 0.2}. {'It holds.' if holds else 'My own work comes out otherwise.'}"
            return "ACCEPT. My own work comes out the same." if holds else "REVISE. My own work comes out otherwise."
        if told.role == "judge":
            return f"{self._best(told)}\nMy own work agrees with it best."
        return None

    def answer(self, told: Instructions) -> str | None:
        """The answer to a subtask, or to a request of several parts or of numbers to be found; None: it is no such."""
        if told.subtask is not None:
            return self._step(pointed(told.subtask, told.request) or told.subtask, told.results)
        return self._whole(told.request, told.found)

    def _step(self, subtask: str, results: Mapping[int, str]) -> str | None:
        answers = [answer_in(results[number]) for number in sorted(results)]
        if len(answers) > 1 and "semicolon" in subtask.casefold() and solve(subtask) is None:
            return "; ".join(answers)
        whole = self._whole(subtask, None)
        if whole is not None:
            return whole
        return self.part(about(subtask, answers[-1]) if answers else subtask)

    def _whole(self, text: str, found: str | None) -> str | None:
        if (numbers := solve_checkable(text)) is not None:
            return self._numbers(text, numbers)
        parts = split(text)
        return self._several(parts, found) if parts.several else None

    def _several(self, parts: Parts, found: str | None) -> str:
        """Part by part; `found` is what somebody else has for the first."""
        answers: list[str] = []
        for number, part in enumerate(parts.parts):
            asked = about(part, answers[-1]) if parts.chained and answers else part
            given = found if number == 0 and found else self.part(asked)
            answers.append(given if given is not None else answers[-1] if answers else "unknown")
        return answers[-1] if parts.chained else "; ".join(answers)

    def part(self, text: str) -> str | None:
        """A part's answer by this worker; None where it knows no such question."""
        solved = solve(text)
        if solved is None:
            return None
        rng = self._draws(f"part/{text}")
        return solved.answer if rng.random() < self.success.get(solved.skill, 0.0) else mistaken(solved, rng)

    def _numbers(self, text: str, numbers: tuple[int, ...]) -> str:
        rng = self._draws(f"numbers/{text}")
        right = rng.random() < self.success.get(CHECKABLE_SKILL, 0.0)
        return ", ".join(map(str, numbers if right else mistaken_numbers(numbers, rng)))

    def _thought(self, told: Instructions) -> str:
        parts = split(told.request)
        first = self.part(parts.parts[0]) if parts.several else None
        if first is None:
            return "Work it out step by step and check the outcome."
        rest = " ".join(parts.parts[1:])
        return f"Begin with the first part: it comes to {first}. What is left: {rest}"

    def _judged(self, told: Instructions) -> bool:
        """Whether the latest answer holds, as this worker sees it: rightly or not."""
        return told.latest is not None and self.holds(told.request, told.latest)

    def _best(self, told: Instructions) -> str:
        """The letter of the first answer that holds, as this worker sees it; where none does, the first."""
        letters = sorted(told.answers)
        return next(
            (at for at in letters if self.holds(told.request, told.answers[at])), letters[0] if letters else "A"
        )

    def holds(self, request: str, latest: str) -> bool:
        """Whether a reply is right, as this worker sees it: rightly or not."""
        right, sureness = self._known(request)
        if right is None:
            return True
        given = answer_in(latest)
        if solve_checkable(request) is not None:
            given = ", ".join(sorted(given.split(", "), key=lambda item: (len(item), item)))
        holds = given.casefold() == right.casefold()
        return holds if self._draws(f"verify/{request}/{latest}").random() < sureness else not holds

    def _known(self, request: str) -> tuple[str | None, float]:
        """The right answer, and how surely this worker judges by it: better than it solves, as checking is."""
        if (numbers := solve_checkable(request)) is not None:
            return ", ".join(map(str, sorted(numbers))), CHECKING
        parts = split(request)
        answers: list[str] = []
        skills: list[str] = []
        for part in parts.parts:
            solved = solve(about(part, answers[-1]) if parts.chained and answers else part)
            if solved is None:
                return None, 0.0
            answers.append(solved.answer)
            skills.append(solved.skill)
        right = answers[-1] if parts.chained or len(answers) == 1 else "; ".join(answers)
        return right, 0.5 + 0.5 * prod(self.success.get(skill, 0.0) for skill in skills)

    def _draws(self, about_what: str) -> Random:
        """The draws of one part: in most cases the same whatever the salt."""
        own = f"{self.seed}/{self.name}/{about_what}"
        salted = Random(f"{own}/{self.salt}".encode("utf-8", "surrogatepass"))
        if salted.random() >= PERSISTENCE:
            return salted
        return Random(own.encode("utf-8", "surrogatepass"))
