"""Endpoint, card and price are hashed apart, because a change of each invalidates something else."""

from __future__ import annotations

from decimal import Decimal

import pytest

from pointsman.config import load_text
from pointsman.pool import Pool, Worker
from pointsman.upstream.price import add, cost
from pointsman.upstream.usage import Usage

BASE = """
[[workers]]
name = "{name}"
description = "{card}"
model = "{model}"
base_url = "http://127.0.0.1:1/v1"
api_key_env = "{key}"
price = {{ input = {price}, output = 2, cached_input = 0.25 }}
tags = ["{tag}"]
"""
DEFAULTS = {"name": "small", "card": "Good at sums.", "model": "m-1", "key": "A_KEY", "price": "1", "tag": "eu"}


def worker(**changes: str) -> Worker:
    return Pool.of(load_text(BASE.format(**{**DEFAULTS, **changes}))).workers[0]


@pytest.mark.parametrize(
    ("change", "moved"),
    [
        ({"card": "Good at poems."}, {"card_hash"}),
        ({"model": "m-2"}, {"endpoint_hash"}),
        ({"price": "1.5"}, {"price_hash"}),
        ({"key": "OTHER_KEY"}, set()),
        ({"tag": "us"}, set()),
    ],
)
def test_a_change_moves_its_own_hash_only(change: dict[str, str], moved: set[str]) -> None:
    before, after = worker(), worker(**change)
    names = ("endpoint_hash", "card_hash", "price_hash")
    assert {name for name in names if getattr(before, name) != getattr(after, name)} == moved


def test_another_name_is_the_same_endpoint() -> None:
    assert worker(name="renamed").endpoint_hash == worker().endpoint_hash


def test_the_pools_hash_names_all_versions_and_its_cards_hash_the_cards() -> None:
    pool, dearer = (Pool((worker(**change),)) for change in ({}, {"price": "9"}))
    assert pool.hash != dearer.hash
    assert pool.cards_hash == dearer.cards_hash
    assert pool.content["small"] == {
        "endpoint": pool.workers[0].endpoint_hash,
        "card": pool.workers[0].card_hash,
        "price": pool.workers[0].price_hash,
    }


def test_money_is_exact_and_cached_tokens_are_part_of_the_input() -> None:
    price = worker().price
    assert cost(Usage(1_000_000, 0), price) == Decimal(1)
    assert cost(Usage(17_111, 100, cached=17_102), price) == (9 + Decimal("4275.5") + 200) / 1_000_000
    assert cost(Usage(5, 5), None) is None
    assert cost(None, price) is None


def test_one_unknown_makes_a_sum_unknown_and_a_million_small_ones_do_not_drift() -> None:
    assert add(Decimal(1), None) is None
    total: Decimal | None = Decimal(0)
    for _ in range(1000):
        total = add(total, Decimal("0.0000001"))
    assert total == Decimal("0.0001")
