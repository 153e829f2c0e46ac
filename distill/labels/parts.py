"""Training, validation and test rows that share no episode and no text, so that nothing learned by heart counts.

Requests of one episode or of one text are one group (transitively), and a group is whole in one part. Groups are
ordered by their newest request: the latest are the test, those before them the validation. Requests of a group that
are older than the newest training request stay with their group: they are known to be alike, not to be later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from distill.arrays import Integers
from distill.labels.evidence import Asked
from pointsman.errors import BrokenInvariant, UserError
from pointsman.hashing import text_hash

Part = Literal["train", "validation", "test"]
SHARES = {"test": 0.2, "validation": 0.15}
GIVEN: dict[str, Part] = {
    "train": "train", "validation": "validation", "valid": "validation", "dev": "validation",
    "test": "test", "held_out": "test",
}  # fmt: skip


def groups(asked: Sequence[Asked]) -> Integers:
    """A number per request: equal where requests share episode or text, directly or through others."""
    parent = list(range(len(asked)))

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    first: dict[str, int] = {}
    for number, one in enumerate(asked):
        for key in (f"episode {one.episode}", f"text {text_hash(one.text)}"):
            parent[root(number)] = root(first.setdefault(key, number))
    return np.array([root(number) for number in range(len(asked))], np.int64)


def split_by_time(asked: Sequence[Asked]) -> tuple[Part, ...]:
    """The latest fifth of the requests is the test, what comes before it the validation (each by whole groups)."""
    number = groups(asked)
    newest: dict[int, float] = {}
    for group, one in zip(number.tolist(), asked, strict=True):
        newest[group] = max(newest.get(group, 0.0), one.moment.timestamp())
    unique, counts = np.unique(number, return_counts=True)
    sizes = dict(zip(unique.tolist(), counts.tolist(), strict=True))
    part: dict[int, Part] = {}
    wanted = {name: round(share * len(asked)) for name, share in SHARES.items()}
    filled = dict.fromkeys(SHARES, 0)
    for group in sorted(newest, key=lambda group: (-newest[group], group)):
        name: Part = "train"
        if filled["test"] < wanted["test"]:
            name = "test"
        elif filled["validation"] < wanted["validation"]:
            name = "validation"
        part[group] = name
        if name != "train":
            filled[name] += sizes[group]
    return tuple(part[group] for group in number.tolist())


def split_as_given(asked: Sequence[Asked], seed: int) -> tuple[Part, ...]:
    """The data's own words; where it names no validation rows, some of its training groups are drawn for it."""
    unknown = sorted({one.split or "none" for one in asked} - set(GIVEN))
    if unknown:
        raise UserError(f"labels: expected the split of every request as {', '.join(GIVEN)}, got {', '.join(unknown)}")
    parts: list[Part] = [GIVEN[one.split or ""] for one in asked]
    number = groups(asked)
    held = {int(group) for group, part in zip(number, parts, strict=True) if part == "test"}
    parts = ["test" if int(group) in held else part for group, part in zip(number, parts, strict=True)]
    if "validation" not in parts:
        open_groups = sorted({int(group) for group, part in zip(number, parts, strict=True) if part == "train"})
        rng = np.random.default_rng(seed)
        count = round(SHARES["validation"] * len(open_groups))
        chosen = set(rng.choice(open_groups, count, replace=False).tolist()) if count else set()
        parts = ["validation" if int(group) in chosen else part for group, part in zip(number, parts, strict=True)]
    return tuple(parts)


def check_leaks(asked: Sequence[Asked], parts: Sequence[Part]) -> None:
    """Raises `BrokenInvariant` where two parts share an episode or a text."""
    for what, keys in (
        ("episode", [one.episode for one in asked]),
        ("text", [text_hash(one.text) for one in asked]),
    ):
        seen: dict[str, Part] = {}
        for key, part in zip(keys, parts, strict=True):
            if seen.setdefault(key, part) != part:
                raise BrokenInvariant(f"labels: an {what} is in {seen[key]} and in {part}")
