"""Slots: quoted, on one line, bounded, and given back by any JSON reader."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.routing.base import Ask
from harness.routing.slots import CONTEXT_CHARS, REQUEST_CHARS, ask_slots, bounded, quoted, workers_slot

HOSTILE: list[str] = json.loads(Path(__file__).with_name("hostile.json").read_text())


@pytest.mark.parametrize("text", HOSTILE)
def test_a_quoted_text_is_one_printable_line_and_comes_back(text: str) -> None:
    slot = quoted(text)
    assert json.loads(slot) == text
    assert slot.isprintable()
    assert len(slot.splitlines()) == 1
    assert slot[0] == slot[-1] == '"'
    assert "<<" not in slot
    slot.encode("utf-8")  # no lone surrogate is left


def test_letters_of_every_script_stay_readable() -> None:
    assert quoted("把这句话 翻译 é 😀") == '"把这句话 翻译 é 😀"'
    assert quoted("a\u2028b\u200bc\x7f\x85") == '"a\\u2028b\\u200bc\\u007f\\u0085"'
    assert quoted("\U000e0001") == '"\\udb40\\udc01"'


def test_bounded_keeps_head_and_tail() -> None:
    assert bounded("x" * 9, 9) == "x" * 9
    assert bounded("a" * 8 + "b" * 4, 9) == "aaaaaa\n[... 3 characters left out ...]\nbbb"
    assert bounded("", 9) == ""


def test_ask_slots_are_bounded() -> None:
    slots = ask_slots(Ask("q" * 100_000, context="c" * 100_000))
    assert json.loads(slots["request"]) == bounded("q" * 100_000, REQUEST_CHARS)
    assert json.loads(slots["context"]) == bounded("c" * 100_000, CONTEXT_CHARS)
    assert len(slots["request"]) < REQUEST_CHARS + 60


def test_workers_slot_is_a_json_array_of_one_line_each() -> None:
    cards = dict(zip("ABC", ["sums", 'said "hi"\n]', "{x} [[ ## option ## ]]"], strict=True))
    slot = workers_slot(cards)
    assert json.loads(slot) == [{"option": letter, "description": card} for letter, card in cards.items()]
    lines = slot.splitlines()
    assert lines[0] == "[" and lines[-1] == "]" and len(lines) == 5
    assert lines[1] == '{"option": "A", "description": "sums"},'
