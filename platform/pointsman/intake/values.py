"""Values as other systems write them: numbers in texts, times in three forms, JSON within JSON.

Every reader raises `Unreadable` saying what was expected; what is absent, null, or an empty text is None.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from pointsman.errors import UserError
from pointsman.ids import is_uuid, time_of
from pointsman.replay.cells import COST_PLACES, MAX_COST, MAX_TOKENS, SHOWN_CHARS
from pointsman.words import CallStatus

_FIRST, _LAST = datetime(1971, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
_MILLISECONDS_FROM = 1e11  # as seconds that would be the year 5138
_UUID7 = "7"
_WORDS: Mapping[str, CallStatus] = {
    "error": "error", "failure": "error", "failed": "error", "timeout": "timeout", "truncated": "truncated",
    "cancelled": "cancelled", "canceled": "cancelled", "incomplete": "truncated",
}  # fmt: skip


class Unreadable(UserError):
    """A value that is not what its field holds. The message names the field."""


class Values:
    """One row seen through a column map."""

    def __init__(self, row: Mapping[str, Any], fields: Mapping[str, Sequence[str]]) -> None:
        self._row = row
        self._fields = fields

    def get(self, field: str) -> Any:
        """The first path of the field that holds something."""
        for path in self._fields.get(field, ()):
            value = found(self._row, path)
            if not _nothing(value):
                return value
        return None

    def text(self, field: str) -> str | None:
        """A text; a number is one too (an id, a code)."""
        value = self.get(field)
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise _unreadable(field, "a text", value)
        return str(value)

    def number(self, field: str) -> float | None:
        """A finite number of at least 0."""
        value = self.get(field)
        if value is None:
            return None
        number = _number(value)
        if number is None or number < 0:
            raise _unreadable(field, "a number of at least 0", value)
        return number

    def count(self, field: str) -> int | None:
        number = self.number(field)
        if number is not None and (number != int(number) or number > MAX_TOKENS):
            raise _unreadable(field, f"a whole number up to {MAX_TOKENS}", self.get(field))
        return None if number is None else int(number)

    def cost(self, field: str) -> Decimal | None:
        """USD, to the places that the log keeps."""
        number = self.number(field)
        if number is None:
            return None
        if number > MAX_COST:
            raise _unreadable(field, f"USD up to {MAX_COST}", self.get(field))
        return Decimal(str(self.get(field))).quantize(COST_PLACES)

    def milliseconds(self, stem: str) -> float | None:
        """Of the fields `stem`_ms and `stem`_s."""
        found_ms = self.number(f"{stem}_ms")
        seconds = self.number(f"{stem}_s")
        return found_ms if found_ms is not None or seconds is None else seconds * 1000

    def score(self, field: str) -> float | None:
        """From 0 to 1; a truth value, or its word, is 1 or 0."""
        value = self.get(field)
        return None if value is None else read_score(value, field)

    def moment(self, field: str) -> datetime | None:
        """A time: ISO 8601 (UTC where it names no zone), seconds or milliseconds since 1970, a UUIDv7."""
        value = self.get(field)
        if value is None:
            return None
        moment = _moment(value)
        if moment is None or not _FIRST <= moment < _LAST:
            raise _unreadable(field, "a time (ISO 8601, seconds or milliseconds since 1970, or a UUIDv7)", value)
        return moment


def found(row: Any, path: str) -> Any:
    """What stands at a path; a column whose very name has dots wins over a way into objects."""
    if isinstance(row, Mapping) and path in row:
        return row[path]
    value = row
    for name in path.split("."):
        value = from_json(value)
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def from_json(value: Any) -> Any:
    """The value of a text that is a JSON object or list; anything else as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return value


def read_score(value: Any, field: str = "score") -> float:
    """A score in [0, 1]. Raises `Unreadable`."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return float(value.strip().lower() == "true")
    number = _number(value)
    if number is None or not 0 <= number <= 1:
        raise _unreadable(field, "a number from 0 to 1", value)
    return number


def status_of(value: Any) -> tuple[CallStatus, int | None]:
    """How a call ended, and its HTTP status, of a word or a code. An unknown word is a good end."""
    number = _number(value)
    if number is not None:
        code = int(number)
        return ("ok" if code < 400 else "timeout" if code in (408, 504) else "error"), code
    return _WORDS.get(str(value).strip().lower(), "ok"), None


def _nothing(value: Any) -> bool:
    if value is None or value == "":
        return True
    if isinstance(value, float):
        return math.isnan(value)
    return isinstance(value, Mapping | list | tuple) and not value


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, InvalidOperation):
        return None
    return number if math.isfinite(number) else None


def _moment(value: Any) -> datetime | None:
    if isinstance(value, str) and is_uuid(value):
        return time_of(value) if value[14] == _UUID7 else None
    if (number := None if isinstance(value, datetime) else _number(value)) is not None:
        seconds = number / 1000 if number > _MILLISECONDS_FROM else number
        return datetime.fromtimestamp(seconds, UTC) if 0 < seconds < _LAST.timestamp() else None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


def _unreadable(field: str, expected: str, value: Any) -> Unreadable:
    shown = repr(value)
    shown = shown if len(shown) <= SHOWN_CHARS else shown[:SHOWN_CHARS] + "…"
    return Unreadable(f"{field}: expected {expected}, got {shown}")
