"""Money: never overspent by any number of gateways, nearly all of it usable, given back, reset."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from threading import Barrier

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import OperationalError

from pointsman.budgets import FREE, Ledger, Store
from pointsman.budgets.account import Report
from pointsman.errors import RequestError
from pointsman.identity import DEFAULT_PROJECT_ID
from pointsman.ids import new_id

D = Decimal


def budgets(ledger, world):
    return ledger.budgets_of(DEFAULT_PROJECT_ID, world.key_id)


def spend(ledger, world, amount, actual=None):
    """One request, taken and settled."""
    ledger.take(budgets(ledger, world), D(amount)).settle(D(amount if actual is None else actual))


def refused(ledger, world, amount="1", tokens=0):
    with pytest.raises(RequestError) as caught:
        ledger.take(budgets(ledger, world), D(amount), tokens)
    assert caught.value.status == 429
    return caught.value


def test_two_gateways_with_many_threads_never_overspend_and_use_nearly_all(world, engine):
    world.budget(limit_usd=D(10), period="total")
    ledgers = [Ledger(Store(engine, name)) for name in "ab"]
    settled, refusals, stop = [], [], threading.Event()

    def client(ledger, seed):
        rng, own = random.Random(seed), budgets(ledger, world)
        failures = 0
        while failures < 8:
            estimate = D(rng.randint(5, 40)) / 1000
            try:
                reservation = ledger.take(own, estimate)
            except RequestError as error:
                refusals.append(error.code)
                failures += 1
                time.sleep(0.01)
                continue
            if rng.random() < 0.1:
                reservation.release()
                continue
            actual = estimate * D(rng.randint(30, 100)) / 100
            reservation.settle(actual)
            settled.append(actual)

    def keeper(ledger):
        while not stop.wait(0.02):
            asyncio.run(ledger.refresh())

    for ledger in ledgers:
        assert asyncio.run(ledger.refresh())
    threads = [threading.Thread(target=client, args=(ledgers[i % 2], i)) for i in range(16)]
    keepers = [threading.Thread(target=keeper, args=(ledger,)) for ledger in ledgers]
    for thread in threads + keepers:
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    for thread in keepers:
        thread.join()
    assert D("9.0") <= sum(settled) <= D(10)
    assert set(refusals) == {"budget_exceeded"}
    for ledger in ledgers:
        assert asyncio.run(ledger.close())
    world.clock.at = datetime.now(UTC)
    assert world.spent() == pytest.approx(sum(settled), abs=D("1e-6"))
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM budget_lease")) == 0


def test_a_slice_is_a_twentieth_unless_one_request_needs_more(world):
    world.budget(limit_usd=D(100))
    first, second = world.ledger("a"), world.ledger("b")
    spend(first, world, 1)
    with world.engine.connect() as connection:
        assert connection.scalar(text("SELECT amount FROM budget_lease")) == 5
    spend(second, world, 60)
    # 34 of it: 100 less what was spent and the four dollars that the first gateway holds
    assert refused(second, world, 36).retry_after == 1
    spend(second, world, 34)


def test_a_spent_budget_says_so_and_when_it_resets_at_midnight_utc(world):
    world.budget(limit_usd=D(2))
    ledger = world.ledger()
    spend(ledger, world, 2)
    asyncio.run(ledger.refresh())
    error = refused(ledger, world)
    assert error.code == "budget_exceeded"
    assert error.message == ("the budget of this key is $2 a day; $0 of it is left, and this request may cost up to $1")
    assert error.retry_after == 12 * 3600
    world.clock.pass_(hours=12)
    spend(ledger, world, 2)
    asyncio.run(ledger.refresh())
    assert world.spent() == 2
    assert refused(ledger, world).retry_after == 24 * 3600


@pytest.mark.parametrize(
    ("period", "days", "open_again"), [("day", 1, True), ("month", 1, True), ("total", 400, False)]
)
def test_periods_follow_the_calendar(world, period, days, open_again):
    world.budget(limit_usd=D(1), period=period)  # 31 March, noon
    ledger = world.ledger()
    spend(ledger, world, 1)
    world.clock.pass_(days=days)
    if open_again:
        spend(ledger, world, 1)
        return
    asyncio.run(ledger.refresh())
    assert refused(ledger, world).retry_after is None


def test_what_is_under_way_at_midnight_counts_for_the_old_day(world):
    world.budget(limit_usd=D(10))
    ledger = world.ledger()
    reservation = ledger.take(budgets(ledger, world), D(3))
    world.clock.pass_(hours=13)
    spend(ledger, world, 4)
    reservation.settle(D(3))
    asyncio.run(ledger.refresh())
    assert world.spent() == 4
    spend(ledger, world, 6)


def test_a_gateway_that_died_gives_back_what_it_had_not_used(world):
    world.budget(limit_usd=D(10), period="total")
    dead, other = world.ledger("dead"), world.ledger("other")
    dead.take(budgets(dead, world), D(8)).settle(D(2))
    dead.take(budgets(dead, world), D(1))
    dead.take(budgets(dead, world), D(5))  # 1 + 5 are under way when it dies
    asyncio.run(dead.refresh())
    assert refused(other, world, 2).retry_after == 1
    world.clock.pass_(seconds=121)
    spend(other, world, 2)
    asyncio.run(other.refresh())
    assert refused(other, world, "0.01").code == "budget_exceeded"
    world.clock.pass_(days=2)  # folded: the rows go, what was used stays used
    asyncio.run(other.refresh())
    with world.engine.connect() as connection:
        assert connection.scalars(text("SELECT holder FROM budget_lease")).all() == []
    assert world.spent() == 2 + 6 + 2


def test_a_lease_that_lapsed_is_not_spent_here_either(world):
    world.budget(limit_usd=D(100))
    ledger = world.ledger()
    spend(ledger, world, 1)
    own = budgets(ledger, world)
    ledger.reserve(own, D(1)).release()
    world.clock.pass_(seconds=120)
    with pytest.raises(RequestError, match="none of it is free just now"):
        ledger.reserve(own, D(1))
    spend(ledger, world, 1)


def test_a_clean_stop_gives_everything_back(world):
    world.budget(limit_usd=D(10))
    ledger, other = world.ledger("a"), world.ledger("b")
    spend(ledger, world, 4)
    assert asyncio.run(ledger.close())
    spend(other, world, 6)
    assert refused(other, world).code == "budget_exceeded"


def test_one_large_request_does_not_keep_the_rest_from_the_others(world):
    world.budget(limit_usd=D(100))
    ledger, other = world.ledger("a"), world.ledger("b")
    ledger.take(budgets(ledger, world), D(96)).release()
    assert refused(other, world, 50).retry_after == 1
    world.clock.pass_(seconds=1)
    asyncio.run(ledger.refresh())
    spend(other, world, 50)


def test_idle_slices_go_back(world):
    world.budget(limit_usd=D(10), requests_per_minute=60)
    ledger = world.ledger()
    spend(ledger, world, 1)
    world.clock.pass_(seconds=61)
    asyncio.run(ledger.refresh())  # tells what was used
    asyncio.run(ledger.refresh())  # and gives back the rest
    with world.engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM budget_lease")) == 0
        assert connection.execute(text("SELECT spent, requests_left FROM budget")).one() == (1, 60)


def test_what_costs_more_than_estimated_is_charged(world):
    world.budget(limit_usd=D(2))
    ledger = world.ledger()
    spend(ledger, world, "0.1", actual=5)
    asyncio.run(ledger.refresh())
    assert world.spent() == 5
    assert refused(ledger, world, "0.01").retry_after == 12 * 3600


def test_a_reservation_ends_once(world):
    world.budget(limit_usd=D(10))
    ledger = world.ledger()
    reservation = ledger.take(budgets(ledger, world), D(2))
    reservation.settle(D(1))
    reservation.settle(D(1))
    reservation.release()
    released = ledger.take(budgets(ledger, world), D(2))
    released.release()
    released.settle(D(2))
    asyncio.run(ledger.refresh())
    assert world.spent() == 1


def test_the_projects_budget_binds_its_keys_and_the_keyless(world):
    world.budget(limit_usd=D(100))
    world.budget(whole_project=True, limit_usd=D(3))
    ledger = world.ledger()
    spend(ledger, world, 2)
    error = refused(ledger, world, 2)
    assert error.message.startswith("the budget of this project is $3 a day")
    keyless = ledger.budgets_of(DEFAULT_PROJECT_ID, None)
    assert [budget.key_id for budget in keyless] == [None]
    ledger.take(keyless, D(1)).settle(D(1))
    assert ledger.budgets_of("another project", None) == ()


def test_a_caller_without_a_budget_is_never_touched(world):
    ledger = world.ledger()
    assert ledger.reserve((), D(10**9)) is FREE
    FREE.settle(None)
    assert asyncio.run(ledger.ensure((), D(10**9))) is FREE


def test_limits_that_change_are_known_within_a_refresh(world):
    world.budget(limit_usd=D(1))
    ledger = world.ledger()
    spend(ledger, world, 1)
    asyncio.run(ledger.refresh())
    assert refused(ledger, world, 2).code == "budget_exceeded"
    world.budget(limit_usd=D(5))
    asyncio.run(ledger.refresh())
    spend(ledger, world, 2)
    world.budget(limit_usd=D(1))
    asyncio.run(ledger.refresh())
    assert refused(ledger, world, "0.1").code == "budget_exceeded"
    with world.engine.begin() as connection:
        connection.execute(text("DELETE FROM budget"))
    asyncio.run(ledger.refresh())
    assert budgets(ledger, world) == ()


def test_a_hundred_requests_at_once_share_few_queries(world):
    world.budget(limit_usd=D(100))
    ledger = world.ledger()

    async def all_at_once():
        own = budgets(ledger, world)
        return await asyncio.gather(*(ledger.ensure(own, D("0.99")) for _ in range(100)))

    taken = asyncio.run(all_at_once())
    assert len(taken) == 100
    assert refused(ledger, world, 2).code == "budget_exceeded"


def test_while_postgres_is_away_the_slice_is_spent_then_429(world, network):
    world.budget(limit_usd=D(100))
    ledger = Ledger(network, clock=world.clock.monotonic)
    asyncio.run(ledger.refresh())
    spend(ledger, world, 1)
    network.cut = True
    assert not asyncio.run(ledger.refresh())
    for _ in range(4):
        spend(ledger, world, 1)
    error = refused(ledger, world)
    assert error.message == "the budget of this key cannot be read now and what was at hand is spent"
    assert error.retry_after == 2
    assert ledger.reserve((), D(1)) is FREE
    network.cut = False
    assert asyncio.run(ledger.refresh())
    assert world.spent() == 5
    spend(ledger, world, 1)


def test_a_renewal_that_fails_under_a_request_ends_in_429(world, network):
    world.budget(limit_usd=D(100))
    ledger = Ledger(network, clock=world.clock.monotonic)
    asyncio.run(ledger.refresh())
    network.cut = True
    with pytest.raises(RequestError, match="cannot be read now") as caught:
        asyncio.run(ledger.ensure(budgets(ledger, world), D(1)))
    assert caught.value.status == 429
    assert ledger.away


def test_one_that_starts_while_postgres_is_away_knows_from_disk_who_is_limited(world, nowhere, tmp_path):
    world.budget(limit_usd=D(100))
    world.ledger(home=tmp_path)
    started = Ledger(nowhere, home=tmp_path)
    own = started.budgets_of(DEFAULT_PROJECT_ID, world.key_id)
    assert [budget.limit_usd for budget in own] == [D(100)]
    with pytest.raises(RequestError, match="cannot be read now"):
        asyncio.run(started.ensure(own, D(1)))
    first_ever = Ledger(nowhere)
    assert first_ever.budgets_of(DEFAULT_PROJECT_ID, None) == ()
    with pytest.raises(RequestError) as caught:
        first_ever.budgets_of(DEFAULT_PROJECT_ID, world.key_id)
    assert caught.value.status == 503


def test_a_grant_whose_answer_was_lost_is_not_granted_twice(world, network):
    world.budget(limit_usd=D(20))

    class Deaf:
        """Lets every report through and loses one answer."""

        lost = 0

        def catalogue(self):
            return network.catalogue()

        def renew(self, reports):
            grants = network.renew(reports)
            if not self.lost:
                self.lost = len(grants)
                raise OperationalError("renew", {}, OSError("the connection broke"))
            return grants

    store = Deaf()
    ledger = Ledger(store, clock=world.clock.monotonic)
    asyncio.run(ledger.refresh())
    with pytest.raises(RequestError):
        ledger.take(budgets(ledger, world), D(15))
    assert store.lost == 1
    asyncio.run(ledger.refresh())
    spend(ledger, world, 20)
    asyncio.run(ledger.refresh())
    assert world.spent() == 20


def test_a_row_lock_held_elsewhere_costs_a_request_two_seconds_at_most(world):
    world.budget(limit_usd=D(100))
    ledger = world.ledger()
    with world.engine.begin() as connection:
        connection.execute(text("SELECT 1 FROM budget FOR UPDATE"))
        began = time.perf_counter()
        with pytest.raises(RequestError):
            asyncio.run(ledger.ensure(budgets(ledger, world), D(1)))
        assert time.perf_counter() - began < 2
    assert asyncio.run(ledger.refresh())
    spend(ledger, world, 1)


def test_reserve_and_settle_ask_the_database_nothing(world):
    world.budget(limit_usd=D(1_000_000), requests_per_minute=1_900_000_000, tokens_per_minute=1_900_000_000)
    world.budget(whole_project=True, limit_usd=D(1_000_000))
    ledger = world.ledger()
    own, estimate, actual = budgets(ledger, world), D("0.0123"), D("0.0077")
    ledger.take(own, estimate, 900).settle(actual, tokens=700)
    asked: list[str] = []
    event.listen(world.engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    for _ in range(200):
        ledger.reserve(own, estimate, 900).settle(actual, tokens=700)
    assert asked == []
    asyncio.run(ledger.refresh())
    assert asked  # so the count does see what the ledger asks


def test_gateways_that_ask_at_the_same_moment_get_no_more_than_there_is(world):
    with ThreadPoolExecutor(8) as pool:
        for period in ("day", "month", "total"):
            world.budget(limit_usd=D(10), period=period)
            budget = world.store().catalogue().budgets[-1]
            stores, together = [world.store(str(i)) for i in range(8)], Barrier(8)

            def ask(store, budget=budget, together=together):
                together.wait()
                return store.renew([Report(new_id(), budget.id, None, need=D(7))])[0].amount

            amounts = list(pool.map(ask, stores))
            assert D(7) <= sum(amounts) <= D(10)


def test_a_limit_that_is_lowered_takes_back_what_is_not_spent(world):
    world.budget(limit_usd=D(100))
    ledger = world.ledger()
    spend(ledger, world, 1)  # 4 are at hand
    world.budget(limit_usd=D(2))
    asyncio.run(ledger.refresh())
    assert refused(ledger, world, 3).code == "budget_exceeded"
    spend(ledger, world, 1)


def test_a_new_day_forgets_what_closed_leases_spent(world):
    world.budget(limit_usd=D(10))
    ledger = world.ledger()
    spend(ledger, world, 10)
    assert asyncio.run(ledger.close())
    assert world.spent() == 10
    world.clock.pass_(days=1)
    assert world.spent() == 0
    spend(world.ledger("b"), world, 10)


def test_slices_shrink_towards_the_end(world):
    world.budget(limit_usd=D(100))
    ledger, other = world.ledger("a"), world.ledger("b")
    spend(ledger, world, 96)
    asyncio.run(ledger.refresh())
    spend(other, world, "0.01")
    with world.engine.connect() as connection:
        amount = connection.scalar(text("SELECT amount FROM budget_lease WHERE holder = 'b'"))
    assert 0.5 < amount <= 1
