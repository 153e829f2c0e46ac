"""Money, exactly: tokens × USD per million tokens, in `Decimal`. An unknown price costs None, never 0."""

from __future__ import annotations

from decimal import Decimal

from pointsman.pool import Price
from pointsman.upstream.usage import Usage

MILLION = Decimal(1_000_000)


def cost(usage: Usage | None, price: Price | None) -> Decimal | None:
    """USD of one call; None where tokens or price are unknown. Cached tokens are part of the input."""
    if usage is None or price is None:
        return None
    fresh = usage.input - usage.cached
    total = fresh * price.input + usage.cached * price.cached_input + usage.output * price.output
    return total / MILLION


def add(first: Decimal | None, second: Decimal | None) -> Decimal | None:
    """A sum in which one unknown makes the whole unknown."""
    return None if first is None or second is None else first + second
