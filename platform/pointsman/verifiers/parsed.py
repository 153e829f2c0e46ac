"""Equality of parsed JSON, or required keys with their types.

Options: `value` (what the JSON must equal; `partial`: true scores the share of an object's keys), or
`required` (key to `string | number | integer | boolean | array | object | null`). Keys that were not
asked for are ignored where `extra` is true. Texts are compared without case and surrounding space.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pointsman.verifiers import spec as read
from pointsman.verifiers.extract import after_marker, bounded, fenced_block, first_json

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def parsed_json(spec: Mapping[str, Any], answer: str) -> float:
    read.only(spec, ("value", "required", "partial", "extra"))
    if ("value" in spec) == ("required" in spec):
        raise read.fault(spec, "value", "either value or required, and not both")
    required = _required(spec) if "required" in spec else None
    partial, extra = read.flag(spec, "partial", False), read.flag(spec, "extra", True)
    try:
        given = json_in(answer)
    except ValueError:
        return 0.0
    if required is not None:
        return _fits(required, given, extra=extra)
    return _equals(spec["value"], given, partial=partial, extra=extra)


def json_in(answer: str) -> Any:
    """The JSON of a reply: after its marker, in its fence, or anywhere; raises ValueError."""
    text = bounded(answer)
    for part in (after_marker(text), fenced_block(text)):
        try:
            return first_json(part or "")
        except ValueError:
            continue
    return first_json(text)


def same(wanted: Any, given: Any, *, extra: bool = False) -> bool:
    """Deep equality: 1 equals 1.0 and never true; texts ignore case and surrounding space."""
    if isinstance(wanted, bool) or isinstance(given, bool):
        return wanted is given
    if isinstance(wanted, str) and isinstance(given, str):
        return wanted.strip().casefold() == given.strip().casefold()
    if isinstance(wanted, Mapping) and isinstance(given, dict):
        keys_fit = wanted.keys() <= given.keys() if extra else wanted.keys() == given.keys()
        return keys_fit and all(same(value, given[key], extra=extra) for key, value in wanted.items())
    if isinstance(wanted, list | tuple) and isinstance(given, list):
        pairs = zip(wanted, given, strict=False)
        return len(wanted) == len(given) and all(same(a, b, extra=extra) for a, b in pairs)
    return bool(wanted == given)


def _equals(wanted: Any, given: Any, *, partial: bool, extra: bool) -> float:
    if not partial or not isinstance(wanted, Mapping) or not isinstance(given, dict) or not wanted:
        return float(same(wanted, given, extra=extra))
    right = sum(key in given and same(value, given[key], extra=extra) for key, value in wanted.items())
    surplus = 0 if extra else len(given.keys() - wanted.keys())
    return right / (len(wanted) + surplus)


def _fits(required: Mapping[str, str], given: Any, *, extra: bool) -> float:
    if not isinstance(given, dict) or (not extra and given.keys() - required.keys()):
        return 0.0
    return float(all(key in given and _has_type(given[key], kind) for key, kind in required.items()))


def _has_type(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


def _required(spec: Mapping[str, Any]) -> Mapping[str, str]:
    required = spec["required"]
    if not isinstance(required, Mapping) or not required or any(kind not in _TYPES for kind in required.values()):
        raise read.fault(spec, "required", f"an object from keys to one of {', '.join(_TYPES)}")
    return required
