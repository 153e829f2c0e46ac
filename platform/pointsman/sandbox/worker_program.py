"""The program behind a simulated worker: it sees a chat request and nothing else.

It recognises and solves the question by itself, then errs as often as its world says: a draw that is a
function of world, worker, prompt, the request's `seed` and the choice's number. So one prompt always gets
one answer, and another `seed` gets another draw.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from pointsman.sandbox import instructions, prompts, tool_use
from pointsman.sandbox.instructions import Instructions
from pointsman.sandbox.mistakes import mistaken
from pointsman.sandbox.roster import SandboxWorker, Style
from pointsman.sandbox.solvers import solve
from pointsman.sandbox.team_program import TeamProgram
from pointsman.sandbox.toolcalls import calls_for

Finish = Literal["stop", "length", "tool_calls"]

_TEMPLATES: Mapping[Style, tuple[str, ...]] = {
    "terse": ("Answer: {}", "Answer: {}"),
    "sentence": ("I worked through it step by step.\nAnswer: {}", "Here is what I get.\nAnswer: {}"),
    "chatty": ("Happy to help! Let me see. That comes out clearly enough.\nAnswer: {}", "Sure thing!\nAnswer: {}"),
    "markdown": ("**Working:** done in one pass.\n\n**Answer:** {}", "### Result\n\n**Answer:** {}"),
}


@dataclass(frozen=True)
class Reply:
    """One choice of a completion."""

    text: str | None
    finish: Finish = "stop"
    tool_calls: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class WorkerProgram:
    """A worker at work. `success` is the probability of a right answer by skill."""

    worker: SandboxWorker
    seed: int
    success: Mapping[str, float]

    def reply(self, body: Mapping[str, Any], choice: int = 0) -> Reply:
        messages = prompts.messages_of(body)
        prompt = prompts.last_user_text(messages)
        salt = f"{body.get('seed', '')}/{choice}"
        told = instructions.read(prompt)
        asked = told.request if told.subtask is None else told.subtask
        if messages[-1].get("role") != "tool" and (calls := calls_for(body, asked, f"{self.worker.name}/{salt}")):
            return Reply(None, "tool_calls", tuple(calls))
        team = TeamProgram(self.worker.name, self.seed, self.success, salt)
        if asked_for := tool_use.calls(body, messages, told, team):
            return Reply(None, "tool_calls", tuple(asked_for))
        text = team.role_reply(told)
        if text is None:
            found = tool_use.led(messages, told, team)
            answer = team.answer(told) if found is None else found
            text = self._text(body, messages, told, self._rng(prompt, salt), answer)
        return _shaped(text, prompts.stops_of(body), prompts.token_limit(body))

    def latency(self, prompt: str, salt: str) -> float:
        """Seconds to the first token at scale 1: log-normal around the worker's median."""
        return self.worker.first_token * self._rng(prompt, f"latency/{salt}").lognormvariate(0, 0.25)

    def _rng(self, prompt: str, salt: str) -> Random:
        material = f"{self.seed}/{self.worker.name}/{salt}/{prompt}"
        return Random(material.encode("utf-8", "surrogatepass"))

    def _text(
        self,
        body: Mapping[str, Any],
        messages: list[dict[str, Any]],
        told: Instructions,
        rng: Random,
        answer: str | None,
    ) -> str:
        """`answer` is what the team's program has, where the prompt is for it."""
        is_json = False
        if answer is None:
            solved = solve(told.request) if told.subtask is None else None
            if solved is None:
                return self._small_talk(body, messages)
            right = rng.random() < self.success.get(solved.skill, 0.0)
            answer = solved.answer if right else mistaken(solved, rng)
            is_json = solved.form == "json"
        if prompts.wants_json(body, messages):
            return answer if is_json else json.dumps({"answer": answer}, ensure_ascii=False)
        if prompts.wants_bare_answer(messages):
            return answer
        return rng.choice(_TEMPLATES[self.worker.style]).format(answer)

    def _small_talk(self, body: Mapping[str, Any], messages: list[dict[str, Any]]) -> str:
        last = messages[-1]
        if last.get("role") == "tool":
            result = prompts.text_of(last)[:500].encode("utf-8", "replace").decode()
            text = f"The tool returned: {result}"
        else:
            text = (
                f"Hello, this is {self.worker.name}, a simulated worker of the Pointsman sandbox. "
                "I answer the sandbox's exercises (try: What is 17 times 23?); "
                "of anything else I only know how to be polite."
            )
        return json.dumps({"answer": text}) if prompts.wants_json(body, messages) else text


def _shaped(text: str, stops: list[str], limit: int | None) -> Reply:
    """The text up to a stop sequence or the limit of tokens, whichever comes first."""
    cuts = [at for stop in stops if (at := text.find(stop)) >= 0]
    if cuts:
        text = text[: min(cuts)]
    if limit is not None and prompts.count_tokens(text) > limit:
        return Reply(text[: 4 * limit], "length")
    return Reply(text)
