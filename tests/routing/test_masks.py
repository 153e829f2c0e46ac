"""Remembered masks are the masks: whatever is asked, in whatever order, with whoever ill."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

from harness.routing.eligibility import Needs, eligible
from harness.routing.masks import Masks
from harness.routing.remembered import KEPT, Remembered
from pointsman.pool import Endpoint, Pool, Price, Worker
from pointsman.upstream.breaker import Breaker


def worker(name: str, **more: Any) -> Worker:
    return Worker(name, "card", "m", (Endpoint("http://127.0.0.1:1"),), **more)


POOL = Pool(
    (
        worker("bare", price=Price(Decimal(1), Decimal(2), Decimal(1))),
        worker("small", capabilities=frozenset({"tools"}), context_window=100, tags=frozenset({"eu"})),
        worker("large", capabilities=frozenset({"tools", "images"}), context_window=1_000, max_output_tokens=50),
        worker("vectors", capabilities=frozenset({"embeddings"})),
    )
)


def drawn(rng: random.Random) -> Needs:
    return Needs(
        tools=rng.random() < 0.3,
        images=rng.random() < 0.2,
        several=rng.random() < 0.2,
        prompt_tokens=rng.choice((0, 60, 99, 100, 101, 950, 951, 2_000)),
        output_tokens=rng.choice((0, 1, 50, 500)),
        tags=frozenset(rng.sample(("eu", "fast"), rng.choice((0, 0, 1)))),
        allowed=frozenset({"small", "bare"}) if rng.random() < 0.2 else None,
        excluded=frozenset({"bare"}) if rng.random() < 0.2 else frozenset(),
        budget=Decimal("0.0001") if rng.random() < 0.2 else None,
    )


def test_what_is_remembered_is_what_would_be_found() -> None:
    rng = random.Random(3)
    masks = Masks(POOL)
    for round_ in range(3_000):
        breaker = Breaker(1, 10.0, lambda: 0.0)
        for name in rng.sample([w.name for w in POOL.workers], rng.choice((0, 0, 0, 1, 2, 4))):
            breaker.cool_down(name, 5) if rng.random() < 0.5 else breaker.failed(name)
        needs = drawn(rng)
        assert masks.of(needs, breaker) == eligible(POOL, needs, breaker.healthy, breaker.down), (round_, needs)


def test_embeddings_stay_with_their_worker_whatever_its_health() -> None:
    breaker = Breaker(1, 10.0, lambda: 0.0)
    breaker.failed("vectors")
    assert Masks(POOL).of(Needs(embeddings=True), breaker).reasons["vectors"] is None


def test_the_same_needs_meet_the_same_mask_while_all_are_well() -> None:
    masks, breaker = Masks(POOL), Breaker(1, 10.0, lambda: 0.0)
    first = masks.of(Needs(prompt_tokens=10), breaker)
    assert masks.of(Needs(prompt_tokens=20), breaker) is first
    breaker.failed("bare")
    assert masks.of(Needs(prompt_tokens=10), breaker).reasons["bare"] == "unhealthy"
    breaker.succeeded("bare")
    assert masks.of(Needs(prompt_tokens=10), breaker) is first and first.reasons["bare"] is None


def test_what_was_made_for_one_tuple_is_not_taken_for_another() -> None:
    made = Remembered(lambda workers: [one.name for one in workers])
    for number in range(3 * KEPT):
        workers = (worker(f"w{number}"), worker("x"))
        assert made(workers) == [f"w{number}", "x"]
        assert made(workers) is made(workers)
