"""Requests and tokens a minute: buckets shared by gateways, when to come back, and the bound that is documented."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest
from sqlalchemy import text

from pointsman.errors import RequestError
from pointsman.identity import DEFAULT_PROJECT_ID

ZERO = Decimal(0)


def passes(ledger, world, tokens=0):
    """How many requests get through before the first 429, and that error."""
    own = ledger.budgets_of(DEFAULT_PROJECT_ID, world.key_id)
    passed = 0
    while True:
        try:
            ledger.take(own, ZERO, tokens).settle(ZERO)
        except RequestError as error:
            return passed, error
        passed += 1


def test_a_minutes_worth_at_once_then_evenly(world):
    world.budget(requests_per_minute=60)
    ledger = world.ledger()
    passed, error = passes(ledger, world)
    assert passed == 60
    assert (error.status, error.code, error.retry_after) == (429, "rate_limit_exceeded", 1.0)
    assert error.message == "the limit of this key is 60 requests a minute"
    world.clock.pass_(seconds=1)
    assert passes(ledger, world)[0] == 1
    world.clock.pass_(seconds=10)
    assert passes(ledger, world)[0] == 10
    world.clock.pass_(hours=3)
    assert passes(ledger, world)[0] == 60


def test_two_gateways_share_the_bucket_within_the_bound(world):
    world.budget(requests_per_minute=60)
    ledgers = [world.ledger(name) for name in "abc"]
    passed = 0
    for _ in range(60):
        world.clock.pass_(seconds=1)
        for ledger in ledgers:
            passed += passes(ledger, world)[0]
            asyncio.run(ledger.refresh())
    assert 60 + 57 <= passed <= 60 + 60 + 3 * 3


def test_tokens_are_corrected_when_they_are_known(world):
    world.budget(tokens_per_minute=1000)
    ledger = world.ledger()
    own = ledger.budgets_of(DEFAULT_PROJECT_ID, world.key_id)
    first = ledger.take(own, ZERO, 900)
    with pytest.raises(RequestError) as caught:
        ledger.take(own, ZERO, 200)
    assert caught.value.message == "the limit of this key is 1000 tokens a minute"
    assert caught.value.retry_after == pytest.approx(6, abs=0.1)
    first.settle(ZERO, tokens=100)
    second = ledger.take(own, ZERO, 900)
    second.settle(ZERO, tokens=1500)  # more than was thought: the debt is waited for
    world.clock.pass_(seconds=30)
    with pytest.raises(RequestError) as caught:
        ledger.take(own, ZERO, 1)
    assert 0 < caught.value.retry_after <= 7
    world.clock.pass_(seconds=caught.value.retry_after + 0.1)
    asyncio.run(ledger.refresh())
    ledger.take(own, ZERO, 1)


def test_a_request_larger_than_a_minute_can_never_pass(world):
    world.budget(tokens_per_minute=1000)
    with pytest.raises(RequestError) as caught:
        world.ledger().take(world.ledger().budgets_of(DEFAULT_PROJECT_ID, world.key_id), ZERO, 1001)
    assert caught.value.retry_after is None
    assert caught.value.message == ("the limit of this key is 1000 tokens a minute, and this request may take 1001")


def test_refused_requests_do_not_pile_up_a_claim_on_the_bucket(world):
    world.budget(requests_per_minute=60)
    ledger, other = world.ledger("a"), world.ledger("b")
    passes(ledger, world)
    for _ in range(50):
        passes(ledger, world)
    world.clock.pass_(seconds=30)
    asyncio.run(ledger.refresh())
    assert passes(other, world)[0] >= 26


def test_a_release_gives_tokens_back_but_the_request_counts(world):
    world.budget(requests_per_minute=2, tokens_per_minute=100)
    ledger = world.ledger()
    own = ledger.budgets_of(DEFAULT_PROJECT_ID, world.key_id)
    ledger.take(own, ZERO, 100).release()
    ledger.take(own, ZERO, 100).release()
    with pytest.raises(RequestError, match="2 requests a minute"):
        ledger.take(own, ZERO, 0)


def test_the_slice_of_a_busy_minute_goes_back_into_the_bucket(world):
    world.budget(tokens_per_minute=1000)
    ledger = world.ledger()
    own = ledger.budgets_of(DEFAULT_PROJECT_ID, world.key_id)
    ledger.take(own, ZERO, 900).settle(ZERO, tokens=0)
    asyncio.run(ledger.refresh())
    with world.engine.connect() as connection:
        assert connection.scalar(text("SELECT tokens_left FROM budget")) == 950
