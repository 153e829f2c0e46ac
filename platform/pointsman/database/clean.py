"""Values that Postgres can hold: NUL, lone surrogates, NaN and unbounded numbers, made harmless.

What a person typed is kept as it is wherever Postgres can hold it. NUL and lone surrogates become
U+FFFD; NaN, infinities and numbers beyond `numeric` become null. Values are cleaned, never strings
of JSON: the six visible characters `\\u0000` in a text are text and stay.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import msgspec

REPLACEMENT = "\ufffd"
MAX_NUMBER_DIGITS = 1000
_BAD_TEXT = re.compile("[\x00\ud800-\udfff]")
# What a JSON text must hold before it can hold a value that Postgres refuses.
_SUSPECT = re.compile(rb"\\u0000|\\u[dD][89abAB]|NaN|Infinity|[0-9][eE]|[0-9]{300}")


def clean_text(text: str) -> str:
    """`text` with each NUL and lone surrogate replaced by U+FFFD."""
    return _BAD_TEXT.sub(REPLACEMENT, text)


def clean_json(value: Any) -> str:
    """JSON text that `jsonb` takes, for a Python value or for `bytes` that are JSON already."""
    if isinstance(value, bytes | bytearray | memoryview | msgspec.Raw):
        raw = bytes(value)
        if not _SUSPECT.search(raw):
            return raw.decode("utf-8", "replace")
        value = json.loads(raw.decode("utf-8", "surrogatepass"), parse_int=_integer)
    return json.dumps(_clean(value), ensure_ascii=False, default=str)


def _integer(digits: str) -> int | None:
    return int(digits) if len(digits) <= MAX_NUMBER_DIGITS else None


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {clean_text(str(key)): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value
