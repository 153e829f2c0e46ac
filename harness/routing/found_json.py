"""Finds the JSON objects in a text: bare, fenced, after prose or other code, with raw line breaks."""

from __future__ import annotations

import json
from typing import Any

_MAX_STARTS = 40  # a hostile reply of nothing but braces costs this many tries
_DECODER = json.JSONDecoder(strict=False)


def objects_in(text: str) -> list[dict[str, Any]]:
    """Every JSON object of `text` that is not inside another, in order.

    A fence or a backtick plays no part: an object begins at a brace and ends where JSON says so.
    """
    found: list[dict[str, Any]] = []
    position = text.find("{")
    for _ in range(_MAX_STARTS):
        if position < 0:
            break
        value, end = _decoded(text, position)
        if value is not None:
            found.append(value)
        position = text.find("{", end)
    return found


def _decoded(text: str, position: int) -> tuple[dict[str, Any] | None, int]:
    try:
        value, end = _DECODER.raw_decode(text, position)
    except (ValueError, RecursionError):
        return None, position + 1
    return (value, end) if isinstance(value, dict) else (None, position + 1)
