"""What a request may cost at most, so that it can be reserved: unknown prices are the dearest, never 0."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from pointsman.pool import Price

MILLION = Decimal(1_000_000)
ASSUMED = Price(Decimal(15), Decimal(75), Decimal(15))
"""USD per million tokens where no worker of a pool has a price: that of the dearest models on the market."""
ASSUMED_OUTPUT = 2_048
"""Output tokens where the request sets no limit. More may come: the overrun is charged, and bounded by
what is under way."""


def dearest(prices: Iterable[Price | None]) -> Price:
    """The dearest of a pool's prices, part by part; what an unknown price is taken to be."""
    known = [price for price in prices if price is not None]
    if not known:
        return ASSUMED
    return Price(
        max(price.input for price in known),
        max(price.output for price in known),
        max(price.cached_input for price in known),
    )


def estimate(
    prompt_tokens: int,
    output_tokens: int,
    price: Price | None,
    dearest: Price,
    *,
    assumed_output: int = ASSUMED_OUTPUT,
) -> Decimal:
    """USD that a request may cost. `output_tokens` 0: the request sets no limit. `price` None: unknown."""
    used = dearest if price is None else price
    return (prompt_tokens * used.input + (output_tokens or assumed_output) * used.output) / MILLION
