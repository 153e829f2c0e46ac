"""The tasks of a world, in order, as a pure function of (seed, split).

Splits: `train` for traffic and learning, `validation` for choosing between candidates, `held_out` for
the last word. Train and validation ask the same wordings, held_out asks wordings that the other two
never do; in held-out worlds (`roster.HELD_OUT_WORLDS`) every split asks only those. No prompt is in two
splits of a world: the prompt's hash says which it may be in. Gold stands in the verifier alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import count, islice
from random import Random
from typing import Any, Literal

from pointsman.sandbox.families import FAMILIES, Family, Template
from pointsman.sandbox.roster import HELD_OUT_WORLDS, mix, world_rng

Split = Literal["train", "validation", "held_out"]

SHARES: Mapping[Split, frozenset[int]] = {
    "train": frozenset({0, 1, 2}),
    "validation": frozenset({3}),
    "held_out": frozenset({4}),
}


@dataclass(frozen=True)
class Task:
    """A prompt with the verifier of its answer. `skills` are what it takes, in order."""

    id: str
    family: str
    skills: tuple[str, ...]
    prompt: str
    verifier: Mapping[str, Any]


def tasks(seed: int, split: Split, n: int | None = None) -> Iterator[Task]:
    """The first `n` tasks of a split, without end where `n` is None."""
    return islice(_endless(seed, split), n)


def _endless(seed: int, split: Split) -> Iterator[Task]:
    rng = world_rng(seed, f"tasks/{split}")
    shares = mix(seed)
    families, weights = list(FAMILIES), [shares[family.name] for family in FAMILIES]
    for index in count():
        family = rng.choices(families, weights)[0]
        prompt, verifier = _draw(rng, wordings(family, seed, split), split)
        yield Task(f"{seed}-{split}-{index}", family.name, family.skills, prompt, verifier)


def wordings(family: Family, seed: int, split: Split) -> tuple[Template, ...]:
    """The templates that this world's split asks."""
    held_out = split == "held_out" or seed >= HELD_OUT_WORLDS
    return family.held_out if held_out else family.templates


def _draw(rng: Random, templates: tuple[Template, ...], split: Split) -> tuple[str, Mapping[str, Any]]:
    while True:
        prompt, verifier = rng.choice(templates).ask(rng)
        if sha256(prompt.encode()).digest()[0] % 5 in SHARES[split]:
            return prompt, verifier
