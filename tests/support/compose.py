"""Compose files as Compose reads them: variables filled in, anchors merged, several files laid over each other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

_VARIABLE = re.compile(r"\$(?:\$|\{(?P<name>\w+)(?:(?P<how>:?[-?])(?P<rest>[^}]*))?\}|(?P<bare>\w+))")


class Missing(Exception):
    """A variable that a file insists upon is not set."""


class Override:
    """`!override`: in place of what the file before has. `!reset`: nothing is left of it."""

    def __init__(self, value: Any) -> None:
        self.value = value


class _Loader(yaml.SafeLoader):
    pass


def _override(loader: _Loader, node: yaml.Node) -> Override:
    if isinstance(node, yaml.MappingNode):
        return Override(loader.construct_mapping(node, deep=True))
    return Override(loader.construct_sequence(node, deep=True))


_Loader.add_constructor("!override", _override)
_Loader.add_constructor("!reset", lambda loader, node: Override(None))


def read(files: list[Path], environment: Mapping[str, str]) -> dict[str, Any]:
    """One model of all files; raises Missing as Compose does."""
    whole: Any = {}
    for file in files:
        whole = _over(whole, fill(yaml.load(file.read_text(), _Loader), environment))
    return _plain(whole)


def fill(value: Any, environment: Mapping[str, str]) -> Any:
    """Every text with its variables' values; what is a number then is one, as Compose casts it."""
    if isinstance(value, Override):
        return Override(fill(value.value, environment))
    if isinstance(value, dict):
        filled = {key: fill(item, environment) for key, item in value.items()}
        if isinstance(filled.get("replicas"), str):
            filled["replicas"] = int(filled["replicas"])
        return filled
    if isinstance(value, list):
        return [fill(item, environment) for item in value]
    return _VARIABLE.sub(lambda found: _value(found, environment), value) if isinstance(value, str) else value


def env_file(file: Path) -> dict[str, str]:
    """`.env`: NAME=VALUE a line."""
    lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def seconds(duration: str) -> float:
    """`1m30s` in seconds."""
    units = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
    return sum(float(n) * units[unit] for n, unit in re.findall(r"([0-9.]+)(us|ms|s|m|h)", duration))


def _value(found: re.Match[str], environment: Mapping[str, str]) -> str:
    if found[0] == "$$":
        return "$"
    name, how, rest = found["name"] or found["bare"], found["how"] or "", found["rest"]
    value = environment.get(name)
    absent = not value if how.startswith(":") else value is None
    if absent and how.endswith("?"):
        raise Missing(f"{name}: {rest}")
    return (rest or "") if absent and how else value or ""


def _over(below: Any, above: Any) -> Any:
    if isinstance(above, Override):
        return above.value
    if isinstance(below, dict) and isinstance(above, dict):
        merged = deepcopy(below)
        for key, value in above.items():
            merged[key] = _over(below[key], value) if key in below else value
            if isinstance(value, Override) and value.value is None:
                del merged[key]
        return merged
    return [*below, *above] if isinstance(below, list) and isinstance(above, list) else above


def _plain(value: Any) -> Any:
    if isinstance(value, Override):
        return _plain(value.value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
