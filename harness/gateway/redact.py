"""Redaction, before anything reaches the journal: `[log] redact` patterns blacked out in every text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

MARK = "[redacted]"


class Redactor:
    """Without patterns it hands things back as they are."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._pattern = re.compile("|".join(f"(?:{pattern})" for pattern in patterns)) if patterns else None

    def text(self, text: str | None) -> str | None:
        if self._pattern is None or text is None:
            return text
        return self._pattern.sub(MARK, text)

    def value(self, value: Any) -> Any:
        """A JSON value with every text in it redacted."""
        return value if self._pattern is None else self._walk(value)

    def json(self, raw: bytes) -> msgspec.Raw:
        """A JSON text as one line that the journal can carry."""
        if self._pattern is not None:
            return msgspec.Raw(msgspec.json.encode(self._walk(msgspec.json.decode(raw))))
        if b"\n" in raw or b"\r" in raw:  # the journal's lines end at a newline
            return msgspec.Raw(msgspec.json.format(raw, indent=-1))
        return msgspec.Raw(raw)

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self._walk(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._walk(item) for item in value]
        return value
