"""Denial of wallet (S16): what has no price is the dearest of its pool, and never free."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest

from pointsman.budgets import dearest, estimate
from pointsman.budgets.pricing import ASSUMED
from pointsman.errors import RequestError
from pointsman.identity import DEFAULT_PROJECT_ID
from pointsman.pool import Price
from pointsman.upstream.price import cost
from pointsman.upstream.usage import Usage

D = Decimal
CHEAP, DEAR = Price(D("0.1"), D("0.4"), D("0.05")), Price(D(3), D(15), D("0.3"))


def test_the_dearest_is_taken_part_by_part():
    odd = Price(D(5), D(1), D(5))
    assert dearest([CHEAP, None, DEAR, odd]) == Price(D(5), D(15), D(5))
    assert dearest([None, None]) == ASSUMED
    assert dearest([]) == ASSUMED


@pytest.mark.parametrize(
    ("tokens", "price", "expected"),
    [
        ((1000, 500), CHEAP, "0.0003"),
        ((1000, 500), None, "0.0105"),
        ((1000, 0), CHEAP, "0.0009192"),
        ((0, 1), DEAR, "0.000015"),
    ],
)
def test_estimates(tokens, price, expected):
    assert estimate(*tokens, price, DEAR) == D(expected)


@pytest.mark.parametrize("pool", [[None], [CHEAP, None, DEAR]])
def test_a_worker_without_a_price_is_blocked_long_before_a_thousand_calls(world, pool):
    world.budget(limit_usd=D(1))
    ledger, top = world.ledger(), dearest(pool)
    own = ledger.budgets_of(DEFAULT_PROJECT_ID, world.key_id)
    usage = Usage(400, 600)
    passed = 0
    for _ in range(1000):
        try:
            reservation = ledger.take(own, estimate(400, 800, None, top))
        except RequestError as error:
            assert error.code == "budget_exceeded"
            continue
        passed += 1
        reservation.settle(cost(usage, None), cost(usage, top) or D(0))
    assert cost(usage, None) is None
    assert 0 < passed * cost(usage, top) <= 1
    assert passed * cost(usage, top) > 0.8


def test_where_even_the_tokens_are_unknown_the_estimate_is_charged(world):
    world.budget(limit_usd=D(1))
    ledger = world.ledger()
    own = ledger.budgets_of(DEFAULT_PROJECT_ID, world.key_id)
    for _ in range(4):
        ledger.take(own, D("0.25")).settle(None)
    with pytest.raises(RequestError):
        ledger.take(own, D("0.01"))


def test_a_million_tiny_costs_add_up_exactly(world):
    world.budget(limit_usd=D(10))
    ledger = world.ledger()
    own = ledger.budgets_of(DEFAULT_PROJECT_ID, world.key_id)
    ledger.take(own, D(5)).release()
    for _ in range(10_000):
        ledger.reserve(own, D("1e-7")).settle(D("1e-7"))
    asyncio.run(ledger.refresh())
    assert world.spent() == D("0.001")
