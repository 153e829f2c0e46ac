"""The options of one routing prompt: single letters for the offered workers, in a seeded order."""

from __future__ import annotations

import random
from string import ascii_lowercase, ascii_uppercase

from harness.routing.base import RouterFailed
from pointsman.pool import Worker

LETTERS = ascii_uppercase + ascii_lowercase  # each is one token for the usual tokenizers


def options(workers: tuple[Worker, ...], seed: int) -> dict[str, str]:
    """Option letter → worker name, in an order drawn from `seed`, so that position bias can be measured."""
    if len(workers) > len(LETTERS):
        raise RouterFailed("too_many_workers")
    names = [worker.name for worker in workers]
    random.Random(seed).shuffle(names)
    return dict(zip(LETTERS, names, strict=False))
