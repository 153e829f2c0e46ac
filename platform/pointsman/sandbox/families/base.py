"""What a family of tasks is: kinds of question with their gold, and wordings that ask them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

Asked = tuple[Mapping[str, Any], Mapping[str, Any]]
"""The fields that a wording fills in, and the verifier's spec."""

Kind = Callable[[Random], Asked]


@dataclass(frozen=True)
class Template:
    """One wording of one kind of question."""

    wording: str
    kind: Kind

    def ask(self, rng: Random) -> tuple[str, Mapping[str, Any]]:
        """A prompt and the verifier of its answer."""
        fields, verifier = self.kind(rng)
        return self.wording.format(**fields), verifier


@dataclass(frozen=True)
class Family:
    """Tasks that need the same skills. `held_out` wordings never appear in the other splits."""

    name: str
    skills: tuple[str, ...]
    templates: tuple[Template, ...]
    held_out: tuple[Template, ...]


def family(name: str, shown: Mapping[str, Kind], held_out: Mapping[str, Kind]) -> Family:
    """A family that needs the one skill of its own name."""
    return Family(
        name,
        (name,),
        tuple(Template(wording, kind) for wording, kind in shown.items()),
        tuple(Template(wording, kind) for wording, kind in held_out.items()),
    )


def number(value: float, **options: float) -> dict[str, Any]:
    return {"kind": "numeric", "value": value, **options}


def text(value: str, **options: bool) -> dict[str, Any]:
    return {"kind": "exact", "value": value, **options}


def listed(values: list[Any]) -> dict[str, Any]:
    return {"kind": "items", "value": [str(value) for value in values], "ordered": True}


PEOPLE = (
    "Amina", "Bjorn", "Carla", "Dmitri", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas",
    "Kofi", "Lena", "Marco", "Nadia", "Oscar", "Priya", "Rosa", "Samir", "Tilda", "Viktor",
)  # fmt: skip
NOUNS = (
    "lantern", "harbour", "meadow", "copper", "violin", "saddle", "pebble", "orchard", "thunder", "willow",
    "beacon", "marble", "falcon", "ginger", "hammock", "island", "jacket", "kettle", "ladder", "mirror",
    "needle", "oyster", "parcel", "quarry", "ribbon", "satchel", "timber", "umbrella", "velvet", "walnut",
)  # fmt: skip
