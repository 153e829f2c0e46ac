"""The tasks for teams of a world, in order, as a pure function of (seed, split, family).

A stream of their own beside `tasks`, with the same splits: no prompt is in two of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import count, islice
from random import Random

from pointsman.errors import UserError
from pointsman.sandbox.families.team import TEAM_FAMILIES, Asked, TeamFamily
from pointsman.sandbox.roster import HELD_OUT_WORLDS, world_rng
from pointsman.sandbox.tasks import SHARES, Split, Task

NAMES = tuple(family.name for family in TEAM_FAMILIES)


def team_tasks(seed: int, split: Split, n: int | None = None, families: Sequence[str] = NAMES) -> Iterator[Task]:
    """The first `n` tasks of a split for `families`, taken in turn; without end where `n` is None."""
    by_name = {family.name: family for family in TEAM_FAMILIES}
    if unknown := [name for name in families if name not in by_name]:
        raise UserError(f"families: {unknown[0]!r} is none for teams, expected some of {list(NAMES)}")
    return islice(_endless(seed, split, [by_name[name] for name in families]), n)


def _endless(seed: int, split: Split, families: Sequence[TeamFamily]) -> Iterator[Task]:
    streams = {family.name: world_rng(seed, f"team-tasks/{family.name}/{split}") for family in families}
    held_out = split == "held_out" or seed >= HELD_OUT_WORLDS
    for index in count():
        family = families[index % len(families)]
        prompt, skills, verifier = _drawn(streams[family.name], family, split, held_out)
        yield Task(f"{seed}-{split}-{family.name}-{index}", family.name, skills, prompt, verifier)


def _drawn(rng: Random, family: TeamFamily, split: Split, held_out: bool) -> Asked:
    while True:
        asked = family.draw(rng, held_out)
        if sha256(asked[0].encode()).digest()[0] % 5 in SHARES[split]:
            return asked
