"""Templates: what is refused, and that filling interprets nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.routing.base import Ask
from harness.routing.slots import ask_slots, workers_slot
from harness.routing.template import MODES, default_template, fill, load_template, read_template, rendered_instructions
from pointsman.errors import UserError

HOSTILE: list[str] = json.loads(Path(__file__).with_name("hostile.json").read_text())


def raw() -> dict[str, Any]:
    slots = [{"slot": name} for name in ("instructions", "request", "context", "workers")]
    message = {"role": "user", "parts": ["<", slots[0], "|", slots[1], "|", slots[2], "|", slots[3], ">"]}
    return {"format": 1, "instructions": "Do.", "modes": {mode: [message] for mode in MODES}}


def test_fill_puts_values_in_their_places_untouched() -> None:
    template = read_template(json.dumps(raw()))
    slots = {"request": "{context}%s{{7*7}}", "context": "{request}", "workers": "{workers}"}
    assert fill(template, "option", slots) == [
        {"role": "user", "content": "<Do.|{context}%s{{7*7}}|{request}|{workers}>"}
    ]
    assert fill(template, "scores", slots, "Else {x}.")[0]["content"].startswith("<Else {x}.|")


@pytest.mark.parametrize("text", HOSTILE)
def test_no_request_opens_a_section_or_turn_of_the_default_template(text: str) -> None:
    slots = {**ask_slots(Ask(text, context=text)), "workers": workers_slot({"A": text, "B": "x"})}
    plain = {**ask_slots(Ask("x", context="x")), "workers": workers_slot({"A": "x", "B": "x"})}
    for mode in MODES:
        messages = fill(default_template(), mode, slots)
        assert [message["role"] for message in messages] == ["system", "user"]
        headers = [line for line in messages[1]["content"].splitlines() if line.startswith("[[ ##")]
        expected = fill(default_template(), mode, plain)[1]["content"].splitlines()
        assert headers == [line for line in expected if line.startswith("[[ ##")]
        assert json.loads(_section(messages[1]["content"], "request")) == text


def _section(content: str, name: str) -> str:
    return content.split(f"[[ ## {name} ## ]]\n", 1)[1].split("\n", 1)[0]


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in raw().items() if name != key}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "t: not JSON: "),
        ("[]", "t: expected a template of format 1"),
        (json.dumps({**raw(), "format": 2}), "t: expected a template of format 1"),
        (json.dumps(without("instructions")), "t: expected instructions, and modes option, scores"),
        (json.dumps({**raw(), "instructions": " \n"}), "instructions: expected some text, got none"),
        (json.dumps({**raw(), "modes": {"option": []}}), "t: expected instructions, and modes option, scores"),
        (json.dumps({**raw(), "modes": {"option": 1, "scores": []}}), "t: option: expected a list of messages"),
        (
            json.dumps({**raw(), "modes": {"option": [], "scores": []}}),
            "t: option: expected each slot of instructions, request, context, workers once, got none",
        ),
        (
            json.dumps({**raw(), "modes": {mode: raw()["modes"][mode] * 2 for mode in MODES}}),
            "got context, context, instructions, instructions",
        ),
        (
            json.dumps({**raw(), "modes": {mode: [{"role": "tool", "parts": []}] for mode in MODES}}),
            "t: option: expected messages with a role and parts",
        ),
        (
            json.dumps({**raw(), "modes": {mode: [{"role": "user", "parts": [3]}] for mode in MODES}}),
            "t: option: expected a text or a slot, got 3",
        ),
    ],
)
def test_what_is_no_template_is_refused(text: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        read_template(text, "t")
    assert message in str(caught.value)


def test_the_hash_is_of_the_content_and_a_file_loads(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(raw(), indent=4))
    assert load_template(file).hash == read_template(json.dumps(raw())).hash
    assert read_template(json.dumps({**raw(), "instructions": "Do it."})).hash != load_template(file).hash


def test_instructions_are_cleaned_and_indented() -> None:
    assert rendered_instructions("  One\n    two\n\n      three\n") == "One\n        two\n        \n          three"
    with pytest.raises(UserError, match="instructions: expected some text, got none"):
        rendered_instructions("\n \n")
