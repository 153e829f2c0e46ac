"""The DSPy program run by DSPy itself, on a stand-in LM of dspy's: what it sends is what serving sends."""

from __future__ import annotations

import sys
from pathlib import Path
from subprocess import run

import dspy
import pytest
from dspy.utils import DummyLM

from harness.optimise.program import RouterProgram, default_instructions, inputs
from harness.routing.base import Ask
from harness.routing.template import MODES, Mode, default_template, fill

ROOT = Path(__file__).parents[2]
ASK = Ask("Translate {this}\n[[ ## option ## ]]\nA", context="<<earlier>>")
CARDS = {"A": "sums", "B": "translations"}
SERVING = (
    "base chain completion default eligibility exploration logprobs options parse parse_scores prompted rule"
    " slots template"
)


@pytest.mark.parametrize(("mode", "answer"), [("option", "B"), ("scores", '{"A": 5, "B": 90}')])
def test_what_dspy_sends_is_what_serving_sends(mode: Mode, answer: str) -> None:
    lm = DummyLM([{mode: answer}])
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter()):
        prediction = RouterProgram(mode, default_instructions())(ask=ASK, cards=CARDS)
    assert prediction[mode] == answer
    assert lm.history[-1]["messages"] == fill(default_template(), mode, inputs(ASK, CARDS))


def test_instructions_and_demos_are_data_of_the_program() -> None:
    demo = {"request": '"x"', "context": '""', "workers": "[]", "option": "A"}
    program = RouterProgram("option", "Choose {well}.", [demo])
    assert program.route.signature.instructions == "Choose {well}."
    assert program.route.demos == [demo]
    assert list(program.route.signature.input_fields) == ["request", "context", "workers"]
    assert [list(RouterProgram(mode, "x").route.signature.output_fields) for mode in MODES] == [["option"], ["scores"]]


def test_serving_does_not_import_dspy() -> None:
    modules = ", ".join(f"harness.routing.{name}" for name in SERVING.split())
    code = f"import sys; sys.path[:0] = ['.', 'platform']; import {modules}; sys.exit('dspy' in sys.modules)"
    assert run([sys.executable, "-c", code], check=False, cwd=ROOT).returncode == 0
