"""Images that a tool gave come in a user message behind its result: that is still the tool loop, and no new ask."""

from __future__ import annotations

import pytest

from harness.gateway.ask import read_conversation

ASK = {"role": "user", "content": "What is on the screen?"}
CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": {"name": "look"}}]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "(the result is in the next message)"}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
REMINDER = {"type": "text", "text": "<system-reminder>Be careful.</system-reminder>"}


def user(*parts):
    return {"role": "user", "content": list(parts)}


@pytest.mark.parametrize(
    ("behind", "images"),
    [
        ([user(IMAGE)], 1),
        ([user(IMAGE, IMAGE)], 2),
        ([user({**IMAGE, "tool_call_id": "c1"})], 1),
        ([user(IMAGE, REMINDER)], 1),
        ([user(IMAGE), {"role": "system", "content": "Note."}], 1),
        ([user(IMAGE), user(REMINDER)], 1),
        ([user({"type": "input_audio", "input_audio": {"data": "AAAA"}})], 0),
        ([], 0),
    ],
)
def test_still_in_the_loop(behind, images):
    read = read_conversation([ASK, CALL, RESULT, *behind])
    assert read.in_tool_loop and read.tool_call_ids == ("c1",)
    assert (read.ask, read.images) == ("What is on the screen?", images)


@pytest.mark.parametrize(
    ("behind", "ask"),
    [
        ([user(IMAGE, {"type": "text", "text": "And this?"})], "And this?"),
        ([{"role": "assistant", "content": "It is a cat."}, user(IMAGE)], ""),
        ([user({"type": "text", "text": "Stop."})], "Stop."),
    ],
)
def test_a_person_asks_anew(behind, ask):
    read = read_conversation([ASK, CALL, RESULT, *behind])
    assert not read.in_tool_loop and read.ask == ask


def test_an_image_alone_is_an_ask_where_no_tool_was():
    read = read_conversation([user(IMAGE)])
    assert not read.in_tool_loop and read.ask == "" and read.images == 1
