"""Every section and key that `pointsman.toml` may have, read from the model that checks the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic_core import PydanticUndefined

from pointsman.config.descriptions import DESCRIPTIONS, SECTIONS
from pointsman.config.model import (
    BrokerUrl,
    Config,
    EnvName,
    HttpUrl,
    Money,
    Name,
    PriceConfig,
    Seconds,
    Section,
    Share,
)

_NAMED = (
    (Share, "number, 0 to 1"),
    (Seconds, "seconds"),
    (Money, "USD"),
    (HttpUrl, "http(s) address"),
    (BrokerUrl, "address of a broker"),
    (Name, "name"),
    (EnvName, "name of a variable"),
)
_ENDINGS = {list: "[]", dict: ".NAME"}
_PLAIN = {str: "text", int: "whole number", float: "number", bool: "true or false", Decimal: "number"}


@dataclass(frozen=True)
class KeyReference:
    """One key. `default` is as the file would write it; empty: no value; None: the key is required."""

    key: str
    type: str
    default: str | None
    description: str


@dataclass(frozen=True)
class SectionReference:
    """One section: `name` is its path (`workers[].price`), `heading` how the file opens it."""

    name: str
    heading: str
    description: str
    keys: tuple[KeyReference, ...]


def reference() -> tuple[SectionReference, ...]:
    """All sections, in the model's order, each before the sections within it."""
    return tuple(_sections(Config, ""))


def markdown() -> str:
    """The reference as the body of a page."""
    lines: list[str] = []
    for section in reference():
        lines += [f"## `{section.heading}`", "", section.description, ""]
        lines += ["| key | type | default | meaning |", "|---|---|---|---|"]
        for key in section.keys:
            default = "required" if key.default is None else f"`{key.default}`" if key.default else ""
            cells = (f"`{key.key}`", key.type, default, key.description)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _sections(model: type[Section], path: str) -> Iterator[SectionReference]:
    hints = get_type_hints(model, include_extras=True)
    if path:
        yield SectionReference(path, _heading(path), SECTIONS[path], tuple(_keys(model, hints, path)))
    for name in model.model_fields:
        nested, ending = _nested(hints[name])
        if nested is not None:
            yield from _sections(nested, f"{path}.{name}".lstrip(".") + ending)


def _keys(model: type[Section], hints: dict[str, Any], path: str) -> Iterator[KeyReference]:
    for name, field in model.model_fields.items():
        key = f"{path}.{name}"
        shared = f"price.{name}" if model is PriceConfig else key
        nested, ending = _nested(hints[name])
        if nested is not None and not ending:
            description = field.description or SECTIONS[key]
            yield KeyReference(name, "table", _default(field, optional=True), description)
            continue
        optional = not field.is_required()
        yield KeyReference(
            name, _type(hints[name]), _default(field, optional), field.description or DESCRIPTIONS[shared]
        )


def _heading(path: str) -> str:
    name = path.replace("[]", "")
    return f"[[{name}]]" if path.endswith("[]") else f"[{name}]"


def _nested(hint: Any) -> tuple[type[Section] | None, str]:
    """The section that a key holds; `[]` where it holds a list of them, `.NAME` where the reader names each."""
    if isinstance(hint, type) and issubclass(hint, Section):
        return hint, ""
    for argument in get_args(hint):
        found, _ = _nested(argument)
        if found is not None:
            return found, _ENDINGS.get(get_origin(hint), "")
    return None, ""


def _type(hint: Any) -> str:
    for alias, words in _NAMED:
        if hint == alias:
            return words
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(_type(item) for item in arguments if item is not NoneType)
    if origin is Literal:
        return " | ".join(f'"{item}"' for item in arguments)
    if origin is dict:
        return "table"
    if origin is list:
        return "list of tables" if _nested(hint)[0] else f"list of {_type(arguments[0])}"
    if origin is Annotated:
        return _type(arguments[0])
    return _PLAIN[hint]


def _default(field: Any, optional: bool) -> str | None:
    if not optional:
        return None
    value = field.get_default(call_default_factory=True)
    if value is None or value is PydanticUndefined or isinstance(value, Section | dict):
        return ""
    return _toml(value)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, float):
        return f"{value:g}"
    return f'"{value}"' if isinstance(value, str) else str(value)
