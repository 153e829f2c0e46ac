"""Values that Postgres can hold: NUL, lone surrogates, NaN and unbounded numbers, made harmless.

What a person typed is kept as it is wherever Postgres can hold it, numbers digit by digit. NUL and
lone surrogates become U+FFFD; NaN, infinities and numbers beyond a double or 1,000 digits become
null; what is no JSON, or is nested too deep to be read, becomes a text. Values are cleaned, never
strings of JSON: the six visible characters `\\u0000` in a text are text and stay.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import msgspec

REPLACEMENT = "\ufffd"
MAX_NUMBER_DIGITS = 1000
_MAX_NUMBER_BITS = int(MAX_NUMBER_DIGITS * math.log2(10))
_BAD_TEXT = re.compile("[\x00\ud800-\udfff]")
# What a JSON text must hold before it can hold a value that Postgres refuses.
_SUSPECT = re.compile(rb"\\u0000|\\u[dD][89abAB]|NaN|Infinity|[0-9][eE]|[0-9.]{300}")
_encode = msgspec.json.Encoder(enc_hook=str, decimal_format="string").encode


def clean_text(text: str) -> str:
    """`text` with each NUL and lone surrogate replaced by U+FFFD."""
    if text.isascii() and "\0" not in text:
        return text
    return _BAD_TEXT.sub(REPLACEMENT, text)


def clean_json(value: Any) -> str:
    """JSON text that `jsonb` takes, for a Python value or for `bytes` that are JSON already."""
    try:
        if isinstance(value, bytes | bytearray | memoryview | msgspec.Raw):
            raw = bytes(value)
            if not _SUSPECT.search(raw):
                return raw.decode("utf-8", "replace")
            value = _loads(raw)
        return _encode(_clean(value)).decode()
    except RecursionError:
        return json.dumps(REPLACEMENT)


def _loads(raw: bytes) -> Any:
    text = raw.decode("utf-8", "replace")
    try:
        return json.loads(text, parse_int=_number, parse_float=_number, parse_constant=lambda name: None)
    except (ValueError, RecursionError):
        return text


def _number(digits: str) -> msgspec.Raw | float | None:
    """A JSON number as it was written; null beyond what a double or 1,000 digits can say."""
    if "." not in digits and "e" not in digits and "E" not in digits:
        return msgspec.Raw(digits.encode()) if len(digits) <= MAX_NUMBER_DIGITS else None
    value = float(digits)
    if not math.isfinite(value):
        return None
    return msgspec.Raw(digits.encode()) if value and len(digits) <= MAX_NUMBER_DIGITS else value


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int):
        return value if value.bit_length() <= _MAX_NUMBER_BITS else None
    if isinstance(value, dict):
        return {clean_text(str(key)): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value
