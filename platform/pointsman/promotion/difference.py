"""What a candidate would change: the parts of two router versions that are not the same, for a person to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CARD = "card "


@dataclass(frozen=True)
class Difference:
    """One part. `before` or `after` is None where a version does not have it."""

    part: str
    before: str | None
    after: str | None


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """Of two versions' configurations: cards by worker first, then everything else by name."""
    one, other = _parts(before), _parts(after)
    names = sorted({*one, *other}, key=lambda name: (not name.startswith(CARD), name))
    return [Difference(name, one.get(name), other.get(name)) for name in names if one.get(name) != other.get(name)]


def _parts(config: Mapping[str, Any]) -> dict[str, str]:
    cards = config.get("cards")
    shown = {f"{CARD}{worker}": str(text) for worker, text in cards.items()} if isinstance(cards, Mapping) else {}
    others = {name: str(value) for name, value in config.items() if name != "cards" and value is not None}
    return {**shown, **others}
