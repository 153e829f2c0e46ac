"""Reading JSON of a Responses request by type: what does not fit is a 400 that names the parameter."""

from __future__ import annotations

import math
from typing import Any, Literal

import msgspec

from pointsman.errors import RequestError

Fields = dict[str, msgspec.Raw]
Kind = Literal["text", "flag", "number", "count", "object", "list"]

_EXPECTED: dict[Kind, str] = {
    "text": "a text",
    "flag": "true or false",
    "number": "a number",
    "count": "a whole number, 0 or more",
    "object": "an object",
    "list": "a list",
}

_any = msgspec.json.Decoder().decode
_fields = msgspec.json.Decoder(Fields).decode
_objects = msgspec.json.Decoder(list[Fields]).decode


def read_fields(body: bytes) -> Fields:
    """The top-level fields of a body, raw. Raises a 400 where it is no JSON object."""
    try:
        return _fields(body)
    except msgspec.ValidationError:
        raise RequestError("the body must be a JSON object") from None
    except msgspec.DecodeError as error:
        raise RequestError(f"the body is not valid JSON: {error}") from None


def decoded(fields: Fields, name: str, path: str = "") -> Any:
    """The value of a field, None where it is absent; `path` is what stands before the name."""
    raw = fields.get(name)
    if raw is None:
        return None
    try:
        return _any(raw)
    except msgspec.MsgspecError as error:
        raise RequestError(f"{path}{name}: not valid JSON here: {error}", param=path + name) from None


def objects(fields: Fields, name: str) -> list[Fields]:
    """A list of objects whose fields stay raw; empty where it is absent or null."""
    raw = fields.get(name)
    if raw is None or bytes(raw) == b"null":
        return []
    try:
        return _objects(raw)
    except msgspec.ValidationError:
        raise RequestError(f"{name}: expected a list of objects", param=name) from None
    except msgspec.DecodeError as error:
        raise RequestError(f"{name}: not valid JSON here: {error}", param=name) from None


def optional(fields: Fields, name: str, kind: Kind, path: str = "") -> Any:
    """The value of a field that may be absent or null. Raises a 400 where it is of another kind."""
    value = decoded(fields, name, path)
    if value is not None and not _fits(value, kind):
        raise wrong(path + name, _EXPECTED[kind])
    return value


def required_text(value: Any, path: str) -> str:
    if not isinstance(value, str) or not value:
        raise wrong(path, "a text that is not empty")
    return value


def wrong(path: str, expected: str) -> RequestError:
    return RequestError(f"{path}: expected {expected}", param=path)


def _fits(value: Any, kind: Kind) -> bool:
    if kind == "text":
        return isinstance(value, str)
    if kind == "flag":
        return isinstance(value, bool)
    if kind == "object":
        return isinstance(value, dict)
    if kind == "list":
        return isinstance(value, list)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) if kind == "number" else isinstance(value, int) and value >= 0
