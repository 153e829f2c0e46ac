"""A job's result as lines for people: one for each figure, deeper ones indented."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def lines(result: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """`name: value` lines. A list of objects gets a line for each; long lists are counted."""
    for name, value in result.items():
        words = name.replace("_", " ")
        if isinstance(value, Mapping):
            if value:
                yield f"{indent}{words}:"
                yield from lines(value, indent + "  ")
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            yield f"{indent}{words}:"
            for one in value:
                yield f"{indent}  " + ", ".join(f"{key} {_shown(item)}" for key, item in one.items())
        else:
            yield f"{indent}{words}: {_shown(value)}"


def _shown(value: Any) -> str:
    if value is None:
        return "not known"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(_shown(item) for item in value[:20]) + (
            f" and {len(value) - 20} more" if len(value) > 20 else ""
        )
    return str(value)
