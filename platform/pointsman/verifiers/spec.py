"""Reading a verifier's spec: every fault is a `UserError` that names the key and what was expected."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from pointsman.errors import UserError


def fault(spec: Mapping[str, Any], key: str, expected: str) -> UserError:
    got = f"got {spec[key]!r}" if key in spec else "it is missing"
    return UserError(f"verifier {spec.get('kind')}: {key}: expected {expected}, {got}")


def only(spec: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuses keys that no one would read: a misspelt option must not pass as its default."""
    for key in spec:
        if key != "kind" and key not in known:
            raise UserError(f"verifier {spec.get('kind')}: {key}: no such key, expected {', '.join(known)}")


def text(spec: Mapping[str, Any], key: str) -> str:
    value = spec.get(key)
    if not isinstance(value, str) or not value:
        raise fault(spec, key, "a text that is not empty")
    return value


def flag(spec: Mapping[str, Any], key: str, default: bool) -> bool:
    value = spec.get(key, default)
    if not isinstance(value, bool):
        raise fault(spec, key, "true or false")
    return value


def decimal(spec: Mapping[str, Any], key: str, default: str | None = None) -> Decimal:
    """A finite number, given as a JSON number or as text."""
    value = spec.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise fault(spec, key, "a number")
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        raise fault(spec, key, "a number") from None
    if not number.is_finite():
        raise fault(spec, key, "a finite number")
    return number


def texts(spec: Mapping[str, Any], key: str) -> list[str]:
    value = spec.get(key)
    if not isinstance(value, list | tuple) or not value or not all(isinstance(item, str) for item in value):
        raise fault(spec, key, "a list of texts that is not empty")
    return list(value)
