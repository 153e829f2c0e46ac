"""Redaction, before anything is kept or leaves: `[log] redact` patterns blacked out in every text."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from pointsman.database.clean import MAX_NUMBER_DIGITS, clean_json

MARK = "[redacted]"


class Redactor:
    """Without patterns it hands things back as they are."""

    def __init__(self, patterns: Sequence[str]) -> None:
        # Each on its own: flags such as `(?i)` must stand at the start of an expression.
        self._patterns = tuple(re.compile(pattern) for pattern in patterns)

    def text(self, text: str | None) -> str | None:
        if text is None:
            return None
        for pattern in self._patterns:
            text = pattern.sub(MARK, text)
        return text

    def value(self, value: Any) -> Any:
        """A JSON value with every text in it redacted."""
        return self._walk(value) if self._patterns else value

    def struct(self, value: msgspec.Struct) -> Any:
        """What `value` does for a struct, which is handed back itself where there is nothing to redact."""
        return self._walk(msgspec.to_builtins(value)) if self._patterns else value

    def json(self, raw: bytes) -> msgspec.Raw:
        """A JSON text as one line that the journal can carry."""
        if self._patterns:
            return msgspec.Raw(clean_json(self._walk(_decoded(raw))).encode())
        if b"\n" in raw or b"\r" in raw:  # the journal's lines end at a newline
            return msgspec.Raw(msgspec.json.format(raw, indent=-1))
        return msgspec.Raw(raw)

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self._walk(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._walk(item) for item in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            # A card number may come as a number.
            return MARK if any(pattern.search(str(value)) for pattern in self._patterns) else value
        return value


def _decoded(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except msgspec.MsgspecError:  # a number that only the standard parser takes
        return json.loads(raw, parse_int=_integer)


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= MAX_NUMBER_DIGITS else digits
