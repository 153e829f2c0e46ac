"""What a client may ask of the router: `metadata.pointsman`, or headers of the same names."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

import msgspec

from pointsman.errors import RequestError

PREFIX = b"x-pointsman-"
NAMES = (
    "episode_id",
    "allowed_workers",
    "excluded_workers",
    "required_tags",
    "tags",
    "quality",
    "budget",
    "deadline",
    "disable_fallbacks",
    "progress",
    "trace",
)
_LISTS = ("allowed_workers", "excluded_workers", "required_tags", "tags")
MAX_TEXT = 200


class Hints(msgspec.Struct, frozen=True, omit_defaults=True):
    """Unset hints are None. `deadline` is in seconds, `budget` in USD, `quality` from 0 to 1.

    Of a team's answer: `progress` tells in its stream what it is at, `trace` puts its tree beside it.
    """

    episode_id: str | None = None
    allowed_workers: tuple[str, ...] | None = None
    excluded_workers: tuple[str, ...] | None = None
    required_tags: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    quality: float | None = None
    budget: Decimal | None = None
    deadline: float | None = None
    disable_fallbacks: bool = False
    progress: Literal["comments", "events"] | None = None
    trace: bool = False


NO_HINTS = Hints()


def read_hints(metadata: Mapping[str, Any] | None, headers: list[tuple[bytes, bytes]]) -> Hints:
    """Hints from the body's `metadata.pointsman` (an object, or its JSON as a string), headers winning."""
    given: dict[str, Any] = {}
    if metadata is not None and "pointsman" in metadata:
        given = {name: value for name, value in _object(metadata["pointsman"]).items() if value is not None}
    for raw_name, raw_value in headers:
        if raw_name.startswith(PREFIX):
            name = raw_name[len(PREFIX) :].decode("latin-1").replace("-", "_")
            if name in NAMES:  # other headers of ours, such as echoes of answers, are no hints
                given[name] = raw_value.decode("latin-1")
    if not given:
        return NO_HINTS
    return Hints(**{name: _value(name, value) for name, value in given.items()})


def _object(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.MsgspecError, RecursionError):
            raise _wrong("metadata.pointsman", "an object, or its JSON as a string") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _wrong("metadata.pointsman", "an object")
    if unknown := sorted(set(value) - set(NAMES)):
        raise RequestError(
            f"metadata.pointsman.{unknown[0]}: no such hint, expected one of {', '.join(NAMES)}",
            param=f"metadata.pointsman.{unknown[0]}",
        )
    return value


def _value(name: str, value: Any) -> Any:
    if name in _LISTS:
        return _names(name, value)
    if name == "episode_id":
        if not isinstance(value, str) or not 1 <= len(value) <= MAX_TEXT or not value.isprintable():
            raise _wrong(name, f"a printable text of 1 to {MAX_TEXT} characters")
        return value
    if name == "progress":
        if value in ("comments", "events"):
            return value
        raise _wrong(name, "comments or events")
    if name in ("disable_fallbacks", "trace"):
        if isinstance(value, bool):
            return value
        if value in ("true", "false"):
            return value == "true"
        raise _wrong(name, "true or false")
    if name == "budget":
        return _budget(value)
    number = _number(name, value)
    if name == "quality" and not 0 <= number <= 1:
        raise _wrong(name, "a number from 0 to 1")
    if name == "deadline" and not 0 < number <= 86_400:
        raise _wrong(name, "seconds, more than 0 and at most 86400")
    return number


def _names(name: str, value: Any) -> tuple[str, ...]:
    items = [item.strip() for item in value.split(",")] if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(i, str) and 0 < len(i) <= MAX_TEXT for i in items):
        raise _wrong(name, "a list of names")
    return tuple(items)


def _number(name: str, value: Any) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise _wrong(name, "a number")
    return number


def _budget(value: Any) -> Decimal:
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        amount = Decimal("NaN")
    if isinstance(value, bool) or not amount.is_finite() or amount < 0:
        raise _wrong("budget", "an amount of USD, 0 or more")
    return amount


def _wrong(name: str, expected: str) -> RequestError:
    return RequestError(f"hint {name}: expected {expected}", param=name)
