"""A JSON Schema that the reply's JSON must satisfy.

    {"kind": "schema", "schema": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}}

The keywords of draft 2020-12 that say what a value is (`KEYWORDS`), and `$ref` within the schema itself. A
keyword that is not known here is refused, not skipped: a schema must not pass for less than it says. Nothing
is fetched. Texts are matched against `pattern` by their first 200 characters, and patterns are bounded as those
of the `regex` verifier are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from pointsman.errors import UserError
from pointsman.hashing import canonical
from pointsman.verifiers import spec as read
from pointsman.verifiers.parsed import json_in
from pointsman.verifiers.pattern import MAX_ANSWER, compile_bounded

MAX_DEPTH = 60
MAX_STEPS = 200_000

Schema = Mapping[str, Any] | bool
Fits = Callable[["_Check", Any, Any, Mapping[str, Any], int], bool]


def schema(spec: Mapping[str, Any], answer: str) -> float:
    read.only(spec, ("schema",))
    wanted = spec.get("schema")
    if not isinstance(wanted, Mapping | bool):
        raise read.fault(spec, "schema", "a JSON Schema")
    check = _Check(wanted)
    check.refuse_unknown(wanted, "schema", 0)
    try:
        return float(check.fits(json_in(answer), wanted, 0))
    except (ValueError, OverflowError, RecursionError, _TooMuch):
        return 0.0


class _TooMuch(Exception):
    """A value that would take too long to check fits nothing."""


class _Check:
    """One value against one schema, in a bounded number of steps."""

    def __init__(self, root: Schema) -> None:
        self.root = root
        self.steps = 0

    def fits(self, value: Any, wanted: Schema, depth: int) -> bool:
        if isinstance(wanted, bool):
            return wanted
        self.steps += 1
        if depth > MAX_DEPTH or self.steps > MAX_STEPS:
            raise _TooMuch
        return all(_RULES[key](self, value, given, wanted, depth + 1) for key, given in wanted.items() if key in _RULES)

    def refuse_unknown(self, wanted: Any, place: str, depth: int) -> None:
        """Raises `UserError` for what this cannot check, anywhere in the schema."""
        if isinstance(wanted, bool):
            return
        if not isinstance(wanted, Mapping) or depth > MAX_DEPTH:
            raise UserError(f"verifier schema: {place}: expected a JSON Schema at most {MAX_DEPTH} deep")
        for key, given in wanted.items():
            if key not in KEYWORDS:
                raise UserError(f"verifier schema: {place}.{key}: cannot be checked, expected some of {_known()}")
            if not KEYWORDS[key](given):
                raise UserError(f"verifier schema: {place}.{key}: not what the keyword expects: {_shown(given)}")
            if key == "$ref":
                self.resolve(given)
            if key in ("pattern", "patternProperties"):
                for one in [given] if key == "pattern" else given:
                    compile_bounded(one, what=f"verifier schema: {place}.{key}")
            for name, inner in _inner(key, given):
                self.refuse_unknown(inner, f"{place}.{name}", depth + 1)

    def resolve(self, reference: str) -> Schema:
        """What `#`, `#/$defs/NAME` and the like point at."""
        found: Any = self.root
        for part in reference.removeprefix("#").split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or name not in found:
                raise UserError(f"verifier schema: $ref: {reference!r} is not in the schema")
            found = found[name]
        if not isinstance(found, Mapping | bool):
            raise UserError(f"verifier schema: $ref: {reference!r} is no schema")
        return found


def same(first: Any, second: Any) -> bool:
    """Equality as JSON Schema has it: 1 equals 1.0, and neither equals true."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(same(value, second[key]) for key, value in first.items())
    return bool(first == second)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": _is_number,
    "integer": lambda value: _finite(value) and value == math.floor(value),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}


def _finite(value: Any) -> bool:
    return _is_number(value) and (isinstance(value, int) or math.isfinite(value))


def _type(check: _Check, value: Any, given: Any, wanted: Mapping[str, Any], depth: int) -> bool:
    return any(_TYPES[name](value) for name in ([given] if isinstance(given, str) else given))


def _multiple(check: _Check, value: Any, given: Any, wanted: Mapping[str, Any], depth: int) -> bool:
    if not _finite(value):
        return not _is_number(value)
    if isinstance(value, int) and isinstance(given, int):
        return value % given == 0
    share = value / given
    return math.isfinite(share) and abs(share - round(share)) < 1e-9


def _unique(check: _Check, value: Any, given: Any, wanted: Mapping[str, Any], depth: int) -> bool:
    if not given or not isinstance(value, list):
        return True
    seen: dict[bytes, list[Any]] = {}
    for item in value:  # 1 and 1.0 are one value with two texts: those of one kind are compared
        alike = seen.setdefault(b"n" if _is_number(item) else canonical(item), [])
        check.steps += len(alike)
        if check.steps > MAX_STEPS:
            raise _TooMuch
        if any(same(item, other) for other in alike):
            return False
        alike.append(item)
    return True


def _properties(check: _Check, value: Any, given: Any, wanted: Mapping[str, Any], depth: int) -> bool:
    if not isinstance(value, dict):
        return True
    return all(check.fits(value[name], inner, depth) for name, inner in given.items() if name in value)


def _pattern_properties(check: _Check, value: Any, given: Any, wanted: Mapping[str, Any], depth: int) -> bool:
    if not isinstance(value, dict):
        return True
    pairs = ((item, inner) for name, item in value.items() for rule, inner in given.items() if _found(rule, name))
    return all(check.fits(item, inner, depth) for item, inner in pairs)


def _additional(check: _Check, value: Any, given: Any, wanted: Mapping[str, Any], depth: int) -> bool:
    if not isinstance(value, dict):
        return True
    named, rules = wanted.get("properties", {}), wanted.get("patternProperties", {})
    others = (name for name in value if name not in named and not any(_found(rule, name) for rule in rules))
    return all(check.fits(value[name], given, depth) for name in others)


def _items(check: _Check, value: Any, given: Any, wanted: Mapping[str, Any], depth: int) -> bool:
    first = len(wanted.get("prefixItems", ()))
    return not isinstance(value, list) or all(check.fits(item, given, depth) for item in value[first:])


def _prefix_items(check: _Check, value: Any, given: Any, wanted: Mapping[str, Any], depth: int) -> bool:
    if not isinstance(value, list):
        return True
    return all(check.fits(item, inner, depth) for item, inner in zip(value, given, strict=False))


def _contains(check: _Check, value: Any, given: Any, wanted: Mapping[str, Any], depth: int) -> bool:
    return not isinstance(value, list) or any(check.fits(item, given, depth) for item in value)


def _found(pattern: str, text: str) -> bool:
    return compile_bounded(pattern).search(text[:MAX_ANSWER]) is not None


def _of(kind: type | tuple[type, ...], holds: Callable[[Any, Any], bool]) -> Fits:
    """A rule about values of one type; others satisfy it."""

    def rule(check: _Check, value: Any, given: Any, wanted: Mapping[str, Any], depth: int) -> bool:
        return isinstance(value, bool) or not isinstance(value, kind) or holds(value, given)

    return rule


_NUMBER = (int, float)
_RULES: Mapping[str, Fits] = {
    "$ref": lambda c, value, given, w, depth: c.fits(value, c.resolve(given), depth),
    "type": _type,
    "enum": lambda c, value, given, w, depth: any(same(value, item) for item in given),
    "const": lambda c, value, given, w, depth: same(value, given),
    "minimum": _of(_NUMBER, lambda value, given: value >= given),
    "maximum": _of(_NUMBER, lambda value, given: value <= given),
    "exclusiveMinimum": _of(_NUMBER, lambda value, given: value > given),
    "exclusiveMaximum": _of(_NUMBER, lambda value, given: value < given),
    "multipleOf": _multiple,
    "minLength": _of(str, lambda value, given: len(value) >= given),
    "maxLength": _of(str, lambda value, given: len(value) <= given),
    "pattern": _of(str, lambda value, given: _found(given, value)),
    "minItems": _of(list, lambda value, given: len(value) >= given),
    "maxItems": _of(list, lambda value, given: len(value) <= given),
    "uniqueItems": _unique,
    "items": _items,
    "prefixItems": _prefix_items,
    "contains": _contains,
    "minProperties": _of(dict, lambda value, given: len(value) >= given),
    "maxProperties": _of(dict, lambda value, given: len(value) <= given),
    "required": _of(dict, lambda value, given: all(name in value for name in given)),
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional,
    "propertyNames": lambda c, value, given, w, depth: (
        not isinstance(value, dict) or all(c.fits(name, given, depth) for name in value)
    ),
    "allOf": lambda c, value, given, w, depth: all(c.fits(value, inner, depth) for inner in given),
    "anyOf": lambda c, value, given, w, depth: any(c.fits(value, inner, depth) for inner in given),
    "oneOf": lambda c, value, given, w, depth: sum(c.fits(value, inner, depth) for inner in given) == 1,
    "not": lambda c, value, given, w, depth: not c.fits(value, given, depth),
}


def _is_schema(given: Any) -> bool:
    return isinstance(given, Mapping | bool)


def _is_count(given: Any) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and given >= 0


def _is_texts(given: Any) -> bool:
    return isinstance(given, list | tuple) and all(isinstance(item, str) for item in given)


def _is_schemas(given: Any) -> bool:
    return isinstance(given, list | tuple) and len(given) > 0


def _is_named(given: Any) -> bool:
    return isinstance(given, Mapping) and all(isinstance(name, str) for name in given)


def _is_type(given: Any) -> bool:
    names = [given] if isinstance(given, str) else given
    return _is_texts(names) and len(names) > 0 and all(name in _TYPES for name in names)


def _is_any(given: Any) -> bool:
    return True


_WORDS = ("title", "description", "$comment", "$schema", "$id", "default", "examples", "deprecated", "format")
"""Keywords that say nothing of whether a value fits; `format` is an annotation unless a vocabulary asks for more."""

KEYWORDS: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(_WORDS, _is_any),
    **dict.fromkeys(("$defs", "definitions", "properties", "patternProperties"), _is_named),
    **dict.fromkeys(("items", "contains", "additionalProperties", "propertyNames", "not"), _is_schema),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), _is_schemas),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _is_count),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _finite),
    "$ref": lambda given: isinstance(given, str) and (given == "#" or given.startswith("#/")),
    "type": _is_type,
    "enum": lambda given: isinstance(given, list | tuple),
    "const": _is_any,
    "multipleOf": lambda given: _finite(given) and given > 0,
    "pattern": lambda given: isinstance(given, str),
    "uniqueItems": lambda given: isinstance(given, bool),
    "required": _is_texts,
}


def _inner(key: str, given: Any) -> list[tuple[str, Any]]:
    """The schemas within a keyword, with their places."""
    if key in ("$defs", "definitions", "properties", "patternProperties"):
        return [(f"{key}.{name}", inner) for name, inner in given.items()]
    if key in ("allOf", "anyOf", "oneOf", "prefixItems"):
        return [(f"{key}[{position}]", inner) for position, inner in enumerate(given)]
    if key in ("items", "contains", "additionalProperties", "propertyNames", "not"):
        return [(key, given)]
    return []


def _known() -> str:
    return ", ".join(sorted(KEYWORDS))


def _shown(given: Any) -> str:
    text = json.dumps(given, default=str)
    return text if len(text) <= 80 else text[:80] + "…"
