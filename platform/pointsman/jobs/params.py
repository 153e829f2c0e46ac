"""A job's parameters: a frozen dataclass per kind, its fields' bounds and help beside them, checked strictly.

    @dataclass(frozen=True)
    class Count:
        \"\"\"Counts to a number.\"\"\"
        to: int = option(10, "how far", least=1, most=100)

    parse(Count, {"to": 5})            # Count(to=5)
    parse(Count, {"to": "5"})          # UserError: to: expected a whole number, got "5"
    from_text(Count, "to", "5")        # 5: a value as a person typed it

A field is an int, a float, a bool, a str, a Literal, a tuple of str, a dict, or one of these or None.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, Field, asdict, dataclass, field, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pointsman.errors import UserError

Dataclass = Any
"""A dataclass itself, not one of its values; mypy takes no class whose values may have no hash for a cache's key."""
_SHOWN = 80  # characters of a wrong value that an error shows


def option(
    default: Any = MISSING,
    help: str = "",
    *,
    least: float | None = None,
    most: float | None = None,
    choices: tuple[str, ...] | None = None,
) -> Any:
    """A dataclass field with its help and bounds: of a number, or of the length of a text or list."""
    metadata = {"help": help, "min": least, "max": most, "choices": choices}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Option:
    """What there is to know of one parameter, for help texts, forms and command lines. `type` is for people."""

    name: str
    type: str
    help: str
    default: Any
    required: bool
    least: float | None
    most: float | None
    choices: tuple[str, ...] | None


def options(cls: Dataclass) -> tuple[Option, ...]:
    """The parameters of a kind, in the order in which they stand in its dataclass."""
    hints = _hints(cls)
    return tuple(_option(item, hints[item.name]) for item in fields(cls))


def parse(cls: Dataclass, raw: object, what: str = "params") -> Any:
    """`cls` filled from JSON values. Raises UserError with a line for each fault, naming key and expectation."""
    if not isinstance(raw, Mapping):
        raise UserError(f"{what}: expected an object, got {_shown(raw)}")
    hints = _hints(cls)
    known = {item.name: item for item in fields(cls)}
    problems = [_unknown(what, str(key), list(known)) for key in raw if key not in known]
    values: dict[str, Any] = {}
    for name, item in known.items():
        if name not in raw:
            if item.default is MISSING and item.default_factory is MISSING:
                problems.append(f"{what}.{name}: missing, expected {_expected(hints[name], item)}")
            continue
        try:
            values[name] = _value(hints[name], item, raw[name])
        except ValueError:
            problems.append(f"{what}.{name}: expected {_expected(hints[name], item)}, got {_shown(raw[name])}")
    if problems:
        raise UserError("\n".join(problems))
    return cls(**values)


def from_text(cls: Dataclass, name: str, text: str) -> Any:
    """The JSON value of `name` that a person typed as `text`; `parse` judges it. `none` is null where that may be."""
    hint = _hints(cls).get(name)
    if hint is None:
        raise UserError(_unknown("params", name, [item.name for item in fields(cls)]))
    bare, optional = _bare(hint)
    if optional and text.lower() in ("none", "null", ""):
        return None
    if bare is str or get_origin(bare) is Literal:
        return text
    if get_origin(bare) is tuple and not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    try:
        return json.loads(text)
    except ValueError:
        return text  # `parse` says what was expected


def to_json(params: Any) -> dict[str, Any]:
    """All of a dataclass's values, defaults included, so that a later change of defaults leaves queued jobs alone."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(params).items()}


@cache
def _hints(cls: Any) -> Mapping[str, Any]:
    return get_type_hints(cls)


def _value(hint: Any, item: Field[Any], raw: Any) -> Any:
    """`raw` as the field's type, or ValueError."""
    bare, optional = _bare(hint)
    if raw is None and optional:
        return None
    value = _typed(bare, raw)
    _within(item, value)
    return value


def _typed(bare: Any, raw: Any) -> Any:
    if get_origin(bare) is Literal:
        return _right(raw, isinstance(raw, str) and raw in get_args(bare))
    if get_origin(bare) is tuple:
        return tuple(_right(raw, isinstance(raw, list | tuple) and all(isinstance(part, str) for part in raw)))
    if bare is float:
        number = isinstance(raw, int | float) and not isinstance(raw, bool)
        return float(_right(raw, number and abs(raw) < 1e300 and math.isfinite(raw)))
    if bare is int:
        return _right(raw, isinstance(raw, int) and not isinstance(raw, bool))
    return _right(raw, isinstance(raw, get_origin(bare) or bare))


def _right(raw: Any, holds: bool) -> Any:
    if not holds:
        raise ValueError
    return raw


def _within(item: Field[Any], value: Any) -> None:
    least, most, choices = (item.metadata.get(key) for key in ("min", "max", "choices"))
    size = len(value) if isinstance(value, str | tuple | dict) else value
    short = least is not None and size < least
    long = most is not None and size > most
    strange = choices is not None and any(
        one not in choices for one in (value if isinstance(value, tuple) else [value])
    )
    if short or long or strange:
        raise ValueError


def _bare(hint: Any) -> tuple[Any, bool]:
    """The type without `| None`, and whether None was allowed."""
    if get_origin(hint) not in (Union, UnionType):
        return hint, False
    rest = [part for part in get_args(hint) if part is not NoneType]
    return rest[0], len(rest) < len(get_args(hint))


def _named(bare: Any) -> str:
    if get_origin(bare) is Literal:
        return "one of " + ", ".join(get_args(bare))
    if get_origin(bare) is tuple:
        return "a list of texts"
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
    return names.get(bare, "an object")


def _expected(hint: Any, item: Field[Any]) -> str:
    bare, optional = _bare(hint)
    least, most, choices = (item.metadata.get(key) for key in ("min", "max", "choices"))
    words = "one of " + ", ".join(choices) if choices and bare is str else _named(bare)
    if choices and bare is not str:
        words += " out of " + ", ".join(choices)
    counted = " of {} characters" if bare is str else " of {} entries" if get_origin(bare) in (tuple, dict) else " {}"
    if bounds := _bounds(least, most):
        words += counted.format(bounds)
    return words + (" or null" if optional else "")


def _bounds(least: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f"from {least:g} to {most:g}"
    if least is not None:
        return f"of at least {least:g}"
    return f"of at most {most:g}" if most is not None else ""


def _option(item: Field[Any], hint: Any) -> Option:
    required = item.default is MISSING and item.default_factory is MISSING
    default = None if item.default is MISSING else item.default
    bare, _ = _bare(hint)
    choices = item.metadata.get("choices") or (get_args(bare) if get_origin(bare) is Literal else None)
    bounds = item.metadata.get("min"), item.metadata.get("max")
    return Option(item.name, _expected(hint, item), item.metadata.get("help", ""), default, required, *bounds, choices)


def _unknown(what: str, key: str, known: list[str]) -> str:
    return f"{what}.{key[:_SHOWN]}: no such parameter, expected {', '.join(known) if known else 'none'}"


def _shown(raw: object) -> str:
    text = json.dumps(raw, ensure_ascii=True, default=str)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
