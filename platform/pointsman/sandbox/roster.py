"""What anyone may know of a world: its workers without their skills, and its mix of task families.

A pure function of the seed. What the workers are good at is in `truth`, what is said of them in `cards`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from random import Random
from typing import Literal

from pointsman.sandbox.families import FAMILIES
from pointsman.words import Capability

Style = Literal["terse", "sentence", "chatty", "markdown"]

HELD_OUT_WORLDS = 1000
"""Worlds from this seed on ask the held-out wordings in every split."""

_NAMES = (
    "aurel", "brindle", "corvid", "dovetail", "ember", "fathom", "gannet", "hollow", "isobar", "juniper",
    "kestrel", "lumen", "mosaic", "nimbus", "obsidian", "plover", "quill", "rosin", "sable", "tarn",
    "umber", "vesper", "wren", "yarrow",
)  # fmt: skip
_SUFFIXES = ("7b", "mini", "large", "2", "pro", "70b", "lite", "next")
_SIZES: tuple[tuple[str, str], ...] = (
    ("0.10", "0.40"),
    ("0.15", "0.60"),
    ("0.25", "1.00"),
    ("0.50", "1.50"),
    ("0.80", "3.20"),
    ("1.25", "5.00"),
    ("2.50", "10.00"),
)


@dataclass(frozen=True)
class SandboxWorker:
    """A simulated worker. Latencies are seconds at scale 1; prices USD per million tokens."""

    name: str
    price_input: Decimal
    price_output: Decimal
    price_cached: Decimal
    first_token: float
    tokens_per_second: float
    context_window: int
    capabilities: tuple[Capability, ...]
    tags: tuple[str, ...]
    style: Style


def world_rng(seed: int, purpose: str) -> Random:
    """The stream of one purpose: no use of one can shift another."""
    return Random(f"pointsman-sandbox/{seed}/{purpose}")


@lru_cache(maxsize=64)
def workers(seed: int) -> tuple[SandboxWorker, ...]:
    """Five to seven workers, in the world's order."""
    rng = world_rng(seed, "workers")
    count = rng.randint(5, 7)
    names = rng.sample(_NAMES, count)
    sizes = rng.sample(_SIZES, count)
    styles: list[Style] = [rng.choice(("terse", "sentence", "chatty", "markdown")) for _ in names]
    made = [_worker(rng, *parts) for parts in zip(names, sizes, styles, strict=True)]
    if not any("tools" in worker.capabilities for worker in made[:2]):
        made[0] = _with_tools(made[0])
    return tuple(made)


def _worker(rng: Random, name: str, size: tuple[str, str], style: Style) -> SandboxWorker:
    price_in, price_out = (Decimal(part) for part in size)
    dear = float(price_out) / 10
    capabilities: list[Capability] = ["json_schema"]
    if rng.random() < 0.7:
        capabilities.append("tools")
    if rng.random() < 0.35:
        capabilities.append("images")
    return SandboxWorker(
        name=f"{name}-{rng.choice(_SUFFIXES)}",
        price_input=price_in,
        price_output=price_out,
        price_cached=price_in / 4,
        first_token=round(rng.uniform(0.25, 0.5) + 0.5 * dear, 3),
        tokens_per_second=round(rng.uniform(90, 160) - 60 * dear, 1),
        context_window=rng.choice((8_192, 16_384, 32_768, 131_072)),
        capabilities=tuple(capabilities),
        tags=("simulated", "small" if dear < 0.12 else "large"),
        style=style,
    )


def _with_tools(worker: SandboxWorker) -> SandboxWorker:
    fields = {**worker.__dict__, "capabilities": (*worker.capabilities, "tools")}
    return SandboxWorker(**fields)


@lru_cache(maxsize=64)
def mix(seed: int) -> Mapping[str, float]:
    """The share of each task family in the world's traffic; sums to 1."""
    rng = world_rng(seed, "mix")
    weights = {family.name: rng.uniform(0.6, 1.4) for family in FAMILIES}
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}
