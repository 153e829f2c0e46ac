"""Configuration for a sandbox: its workers as `[[workers]]`, and a whole `pointsman.toml`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pointsman.sandbox import router_llm
from pointsman.sandbox.world import CardKind, World

ROUTER_PRICE: Mapping[str, Decimal] = {"input": Decimal("0.05"), "output": Decimal("0.20")}

_HEAD = """\
# Pointsman in front of a sandbox: a simulation. No key, no hub and no GPU is needed.
# The workers below are programs on this machine that solve (or fail) small exercises.
# Change a description, then `pointsman reload`: the next decision carries the new card's hash.

[router]
# The router LLM reads the request and the cards (descriptions) of the eligible workers.
# Here it is a stand-in that scores the overlap of their words; point it at a real LLM for real use.
model = {model}
base_url = {base_url}
price = {price}
# Who decides, in order: the prompted router, ordered rules, the default worker.
chain = ["harness", "rule", "default"]
default = {default}

[exploration]
# The share of requests that go to a worker drawn at random, so that the log can be learned from.
epsilon = 0.05

[sandbox]
# A world is a pure function of its seed: workers, prices, cards, tasks.
seed = {seed}
# world: one or two workers are described wrongly. Also: truthful, nonsense.
cards = {cards}
# The share of driven requests that get feedback.
feedback = {feedback}
"""

_WORKER = """
[[workers]]
name = {name}
description = {description}
model = {model}
base_url = {base_url}
# USD per million tokens.
price = {price}
context_window = {context_window}
capabilities = {capabilities}
tags = {tags}
"""


def worker_configs(seed: int, base_url: str, cards: CardKind = "world") -> list[dict[str, Any]]:
    """The world's workers as entries of `[[workers]]`, valid for `pointsman.config.WorkerConfig`."""
    world = World(seed)
    described = world.cards(cards)
    return [
        {
            "name": worker.name,
            "description": described[worker.name],
            "model": worker.name,
            "base_url": base_url,
            "price": {
                "input": worker.price_input,
                "output": worker.price_output,
                "cached_input": worker.price_cached,
            },
            "context_window": worker.context_window,
            "capabilities": list(worker.capabilities),
            "tags": list(worker.tags),
        }
        for worker in world.workers
    ]


def toml_text(seed: int, port: int, cards: CardKind = "world", *, feedback: float = 0.5) -> str:
    """A whole `pointsman.toml` for a sandbox that listens on loopback at `port`."""
    base_url = f"http://127.0.0.1:{port}/v1"
    head = _HEAD.format(
        model=_toml(router_llm.MODEL),
        base_url=_toml(base_url),
        price=_toml(ROUTER_PRICE),
        default=_toml(World(seed).default),
        seed=seed,
        cards=_toml(cards),
        feedback=feedback,
    )
    workers = worker_configs(seed, base_url, cards)
    return head + "".join(_WORKER.format(**{key: _toml(value) for key, value in w.items()}) for w in workers)


def _toml(value: Any) -> str:
    """A value of ours as TOML: ASCII texts, numbers, lists, flat tables."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, Decimal):
        return format(value, "f")
    return json.dumps(value)
