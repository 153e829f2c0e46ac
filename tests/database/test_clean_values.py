"""What Postgres refuses is made harmless, and nothing else is touched."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointsman.database.clean import MAX_NUMBER_DIGITS, clean_json, clean_text


def test_text() -> None:
    assert clean_text("a\x00b\ud800c\udfffd\u2028😀") == "a\ufffdb\ufffdc\ufffdd\u2028😀"
    assert clean_text("\\u0000 \\ud800") == "\\u0000 \\ud800"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'{"a":1}', '{"a":1}'),  # sound JSON is not even parsed
        (b'{"a": "\\u00df  \xc3\xa9"}', '{"a": "\\u00df  é"}'),
        (b'{"a":"\\u0000"}', '{"a":"\ufffd"}'),
        (b'{"a":"\\\\u0000"}', '{"a":"\\\\u0000"}'),
        (b'{"\\u0000":1}', '{"\ufffd":1}'),
        (b'"\\ud83d\\ude00"', '"😀"'),
        (b'"\\ud83d"', '"\ufffd"'),
        (b"[NaN,Infinity,-Infinity]", "[null,null,null]"),
        (b"[1e999,-1e999,1e400]", "[null,null,null]"),
        (b"[1e5,1E-5,0e9,1e-999]", "[1e5,1E-5,0.0,0.0]"),
        (b"[1e2,0.12345678901234567890123]", "[1e2,0.12345678901234567890123]"),
        (b"[1e2,9007199254740993]", "[1e2,9007199254740993]"),
        (b"[" + b"7" * MAX_NUMBER_DIGITS + b"]", "[" + "7" * MAX_NUMBER_DIGITS + "]"),
        (b"[" + b"7" * (MAX_NUMBER_DIGITS + 1) + b"]", "[null]"),
        (b"[" + b"7" * 5_000 + b"]", "[null]"),
        (b'{"a":NaN', '"{\\"a\\":NaN"'),  # no JSON: a text
        (b'"\xff\xfe"', '"\ufffd\ufffd"'),
        (b'["\xed\xa0\x80",1e1]', '["\ufffd\ufffd\ufffd",1e1]'),
    ],
)
def test_json_bytes(raw: bytes, expected: str) -> None:
    assert clean_json(raw) == expected
    assert clean_json(msgspec.Raw(raw)) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a\x00": ["\ud800", float("nan"), (1, 2)], 3: None}, {"a\ufffd": ["\ufffd", None, [1, 2]], "3": None}),
        (2**200, 2**200),
        (10**MAX_NUMBER_DIGITS * 10, None),
        (True, True),
        ("NaN", "NaN"),
        ("\\u0000", "\\u0000"),
    ],
)
def test_python_values(value: Any, expected: Any) -> None:
    assert json.loads(clean_json(value)) == expected


def test_a_nesting_too_deep_becomes_something_that_can_be_stored() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    assert json.loads(clean_json(deep)) == "\ufffd"
    raw = b"[" * 100_000 + b"1e5" + b"]" * 100_000
    assert json.loads(clean_json(raw)) == raw.decode()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters()), inner, max_size=4),
    max_leaves=12,
)


def holdable(value: Any) -> bool:
    text = json.dumps(value)
    return "\\u0000" not in text and "\\ud" not in text


@settings(max_examples=200, deadline=None)
@given(JSON)
def test_any_json_is_clean_after_cleaning_and_what_was_sound_is_unchanged(value: Any) -> None:
    raw = json.dumps(value).encode()
    for cleaned in (clean_json(value), clean_json(raw)):
        again = json.loads(cleaned)
        assert "\x00" not in json.dumps(again, ensure_ascii=False)
        cleaned.encode()
        assert json.loads(clean_json(cleaned.encode())) == again
    if holdable(value) and b"NaN" not in raw and b"Infinity" not in raw:
        assert json.loads(clean_json(value)) == json.loads(clean_json(raw)) == value
