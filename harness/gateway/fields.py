"""The top-level fields of a JSON body, kept raw: decoded only where something must be known of them.

Raw fields let a body reach a worker with numbers, key order and unknown fields as they came.
"""

from __future__ import annotations

from typing import Any

import msgspec

from pointsman.errors import RequestError

Fields = dict[str, msgspec.Raw]

_fields = msgspec.json.Decoder(Fields).decode
_any = msgspec.json.Decoder().decode


def read_fields(body: bytes) -> Fields:
    """Raises a 400 where the body is no JSON object."""
    try:
        return _fields(body)
    except msgspec.ValidationError:
        raise RequestError("the body must be a JSON object") from None
    except msgspec.DecodeError as error:
        raise RequestError(f"the body is not valid JSON: {error}") from None


def decoded(fields: Fields, name: str) -> Any:
    """The value of a field, None where it is absent."""
    raw = fields.get(name)
    if raw is None:
        return None
    try:
        return _any(raw)
    except msgspec.MsgspecError as error:
        raise RequestError(f"{name}: not valid JSON here: {error}", param=name) from None


def flag(fields: Fields, name: str) -> bool:
    """A field that is true or false; absent and null are false."""
    value = decoded(fields, name)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise RequestError(f"{name}: expected true or false", param=name)


def model_name(fields: Fields) -> str:
    model = decoded(fields, "model")
    if not isinstance(model, str) or not model:
        raise RequestError('model: expected a text, such as "pointsman"', param="model")
    return model


def metadata_of(fields: Fields) -> dict[str, Any] | None:
    if "metadata" not in fields:
        return None
    value = decoded(fields, "metadata")
    if value is not None and not isinstance(value, dict):
        raise RequestError("metadata: expected an object", param="metadata")
    return value


def may_store(fields: Fields) -> bool:
    """Whether the request's text may be kept: unless it says `store: false`."""
    return "store" not in fields or decoded(fields, "store") is not False


def strip_hints(fields: Fields) -> None:
    """Takes `metadata.pointsman` out, and `metadata` with it when nothing else is in it."""
    rest = {name: value for name, value in _fields(fields["metadata"]).items() if name != "pointsman"}
    if rest:
        fields["metadata"] = msgspec.Raw(msgspec.json.encode(rest))
    else:
        del fields["metadata"]
