"""Fields made from the dataclass of a job kind's parameters: its defaults, bounds and help, nothing written twice."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pointsman.jobs.kinds import JobKind
from pointsman.jobs.params import Option, from_text, options

LARGEST = 2**53 - 1  # what a number field takes
NULL = " or null"


def fields(kind: JobKind) -> dict[str, Any]:
    """Draws a field for each parameter; the values as JSON has them, for `parse_params` to judge."""
    columns = st.columns(2)
    values = {}
    for place, option in enumerate(options(kind.params)):
        with columns[place % 2]:
            values[option.name] = _field(kind, option)
    return {name: value for name, value in values.items() if value is not None or _nullable(kind, name)}


def _field(kind: JobKind, option: Option) -> Any:
    shared: dict[str, Any] = {
        "label": label(option.name),
        "help": f"{option.help} ({option.type})",
        "key": key(kind, option.name),
    }
    bare = option.type.removesuffix(NULL)
    if bare == "true or false":
        return st.checkbox(value=bool(option.default), **shared)
    if bare.startswith("a whole number"):
        return _whole(option, shared)
    if bare.startswith("a number"):
        return st.number_input(
            value=option.default, min_value=_float(option.least), max_value=_float(option.most), format="%g", **shared
        )
    if bare.startswith("one of"):
        return st.selectbox(options=option.choices or (), index=_index(option), **shared)
    if option.choices:
        return st.multiselect(options=option.choices, default=list(option.default or ()), **shared)
    return _text(kind, option, shared)


def _whole(option: Option, shared: dict[str, Any]) -> int | None:
    least = None if option.least is None else int(option.least)
    most = None if option.most is None else min(int(option.most), LARGEST)
    typed: int | None = st.number_input(value=option.default, min_value=least, max_value=most, step=1, **shared)
    return typed


def _text(kind: JobKind, option: Option, shared: dict[str, Any]) -> Any:
    """A text, or a list of texts with commas between; empty where the parameter may be null."""
    shown = ", ".join(option.default) if isinstance(option.default, tuple) else option.default or ""
    typed = st.text_input(value=str(shown), **shared).strip()
    if not typed and option.type.endswith(NULL):
        return None
    return from_text(kind.params, option.name, typed)


def label(name: str) -> str:
    """`per_minute` as `Per minute`."""
    return name.replace("_", " ").capitalize()


def key(kind: JobKind, name: str) -> str:
    return f"param-{kind.name}-{name}"


def _nullable(kind: JobKind, name: str) -> bool:
    return next(one.type.endswith(NULL) for one in options(kind.params) if one.name == name)


def _index(option: Option) -> int:
    return (option.choices or ()).index(option.default) if option.default in (option.choices or ()) else 0


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)
