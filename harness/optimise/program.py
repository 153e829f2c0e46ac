"""The router as a DSPy program: one prediction over the request and the cards of the workers.

Instructions and cards are data: the instructions come as text, the cards with each call. Two forms of
answer exist (`template.Mode`): one option letter, whose log-probabilities are the scores, or points
for every option. Optimisers change the instructions and demos of `RouterProgram.route`; `compile`
turns the result into the plain template that serves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import dspy

from harness.routing.base import Ask
from harness.routing.slots import ask_slots, workers_slot
from harness.routing.template import Mode

_INPUTS = {
    "request": "what the person asked, as a JSON string",
    "context": "what surrounded it, as a JSON string; may be empty",
    "workers": "the options, as a JSON array of option letter and description",
}
_OUTPUTS: dict[Mode, str] = {
    "option": "the letter of the best option, alone",
    "scores": "a JSON object from every option letter to its fit for the request, a number from 0 to 100",
}


def default_instructions() -> str:
    """The hand-written instructions that a router starts from."""
    return resources.files("harness.optimise").joinpath("instructions.txt").read_text(encoding="utf-8").strip()


def signature(mode: Mode, instructions: str) -> Any:
    """The DSPy signature of one form of answer (a class, which dspy types as Any)."""
    fields: dict[str, Any] = {name: (str, dspy.InputField(desc=desc)) for name, desc in _INPUTS.items()}
    fields[mode] = (str, dspy.OutputField(desc=_OUTPUTS[mode]))
    return dspy.Signature(fields, instructions)


def inputs(ask: Ask, cards: Mapping[str, str]) -> dict[str, str]:
    """The program's inputs for an ask and the cards by option letter: what serving puts into the slots."""
    return {**ask_slots(ask), "workers": workers_slot(cards)}


class RouterProgram(dspy.Module):  # type: ignore[misc]
    """Predicts `mode`'s answer from an ask and the cards by option letter."""

    def __init__(self, mode: Mode, instructions: str, demos: Sequence[Mapping[str, str]] = ()) -> None:
        super().__init__()
        self.mode: Mode = mode
        self.route = dspy.Predict(signature(mode, instructions))
        self.route.demos = [dict(demo) for demo in demos]

    def forward(self, ask: Ask, cards: Mapping[str, str]) -> Any:
        return self.route(**inputs(ask, cards))
