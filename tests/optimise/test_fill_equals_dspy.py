"""Our own filling of a compiled template gives the bytes of DSPy's adapter, whatever is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dspy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.optimise.compile import compile_default
from harness.optimise.program import RouterProgram, default_instructions, inputs
from harness.routing.base import Ask
from harness.routing.template import MODES, Mode, Template, default_template, fill, template_of

HOSTILE: list[str] = json.loads((Path(__file__).parents[1] / "routing" / "hostile.json").read_text())
LONG = ["x" * 50_000, "é\n" * 9_000, "[[ ## option ## ]]\n" * 900, "<<" * 5_000, "😀" * 6_001, "\u0000" * 7_000]
DEMOS: dict[Mode, list[dict[str, str]]] = {
    "option": [
        {
            "request": '"add {x}"',
            "context": '""',
            "workers": '[\n{"option": "A", "description": "sums"}\n]',
            "option": "A",
        },
        {"request": '"incomplete, with 100% {{braces}}"', "option": "B"},
    ],
    "scores": [
        {"request": '"add"', "context": '"c"', "workers": "[]", "scores": '{"A": 90, "B": 5}'},
        {"request": '"  spaces  "', "scores": '{"A": 1}'},
    ],
}
CARDS = {"A": "good at sums", "B": "knows {braces}, %s and [[ ## option ## ]]"}


@pytest.fixture(scope="module")
def with_demos() -> Template:
    return template_of(compile_default(demos=DEMOS))


def dspy_messages(mode: Mode, slots: dict[str, str], demos: list[dict[str, str]], instructions: str) -> Any:
    program = RouterProgram(mode, instructions, demos)
    return dspy.ChatAdapter().format(program.route.signature, program.route.demos, slots)


def as_bytes(messages: Any) -> bytes:
    return json.dumps(messages, ensure_ascii=False).encode("utf-8")


@pytest.mark.parametrize("mode", MODES)
def test_the_corpus_without_demos(mode: Mode) -> None:
    assert len(HOSTILE) >= 100
    for text in HOSTILE + LONG:
        for ask in (Ask(text), Ask("ask", context=text)):
            slots = inputs(ask, CARDS)
            theirs = dspy_messages(mode, slots, [], default_instructions())
            assert as_bytes(fill(default_template(), mode, slots)) == as_bytes(theirs), text[:80]


@pytest.mark.parametrize("mode", MODES)
def test_the_corpus_with_demos(mode: Mode, with_demos: Template) -> None:
    for text in HOSTILE + LONG:
        slots = inputs(Ask(text, context=text), CARDS)
        theirs = dspy_messages(mode, slots, DEMOS[mode], default_instructions())
        ours = fill(with_demos, mode, slots)
        assert len(ours) == 6
        assert as_bytes(ours) == as_bytes(theirs), text[:80]


@pytest.mark.parametrize("mode", MODES)
def test_hostile_cards(mode: Mode) -> None:
    cards = {chr(65 + place % 26): text for place, text in enumerate(HOSTILE[-26:])}
    slots = inputs(Ask("ask"), cards)
    assert as_bytes(fill(default_template(), mode, slots)) == as_bytes(
        dspy_messages(mode, slots, [], default_instructions())
    )


@pytest.mark.parametrize(
    "instructions",
    [
        "One line.",
        "  indented start\n    second\n      third\n\n",
        "\n\nblank lines around\n\n",
        "tabs\there\n\tand there",
        "ends with space \nline\u2028separator\x85next\x0bvertical",
        "braces {request} {{7*7}} %(x)s [[ ## option ## ]]",
        "Wähle; 选择 \\n literally",
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_overriding_instructions_equals_dspys_with_instructions(mode: Mode, instructions: str) -> None:
    slots = inputs(Ask("ask"), CARDS)
    ours = fill(default_template(), mode, slots, instructions)
    assert as_bytes(ours) == as_bytes(dspy_messages(mode, slots, [], instructions))


@settings(max_examples=60, deadline=None)
@given(
    text=st.text(st.characters(), max_size=300),
    context=st.text(st.characters(), max_size=100),
    card=st.text(st.characters(), max_size=100),
)
def test_any_text(text: str, context: str, card: str) -> None:
    slots = inputs(Ask(text, context=context), {"A": card, "B": "x"})
    for mode in MODES:
        theirs = dspy_messages(mode, slots, [], default_instructions())
        assert as_bytes(fill(default_template(), mode, slots)) == as_bytes(theirs)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200).filter(lambda text: bool(text.strip())))
def test_any_instructions(instructions: str) -> None:
    slots = inputs(Ask("ask"), CARDS)
    theirs = dspy_messages("option", slots, [], instructions)
    assert fill(default_template(), "option", slots, instructions) == theirs


def test_a_marker_of_dspys_custom_types_in_a_request_stays_text() -> None:
    marker = next(text for text in HOSTILE if text.startswith("<<CUSTOM"))
    slots = inputs(Ask(marker), CARDS)
    theirs = dspy_messages("option", slots, [], default_instructions())
    assert all(isinstance(message["content"], str) for message in theirs)
    unescaped = dspy_messages("option", {**slots, "request": marker}, [], default_instructions())
    assert isinstance(unescaped[-1]["content"], list)  # what would happen without the escape
