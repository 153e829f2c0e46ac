"""Budgets and rates at the gateway: nothing is overspent, an unknown price is no way around, others are untouched."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest

from pointsman.budgets.manage import set_budget
from pointsman.identity import DEFAULT_PROJECT_ID, hash_key


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


@pytest.fixture
def budgeted(gateway: Any) -> Callable[..., str]:
    """`budgeted(limit_usd=…)`: a new key with a budget that the gateway knows."""

    def make(**limits: Any) -> str:
        key = gateway.key()
        entry = gateway.state.directory.keys[hash_key(key)]
        with gateway.engine.begin() as connection:
            set_budget(connection, project_id=DEFAULT_PROJECT_ID, key_id=entry.id, **limits)
        gateway.refresh()
        return key

    return make


def spent(gateway: Any, key: str) -> Decimal:
    gateway.ship()
    rows = gateway.sql(
        "SELECT coalesce(sum(o.cost), 0) FROM outcome o JOIN request r ON r.episode_id = o.episode_id "
        "JOIN api_key k ON k.id = r.key_id WHERE k.hash = :hash",
        hash=hash_key(key),
    )
    return rows[0][0]


def test_a_budget_is_spent_and_then_refused_with_the_time_of_its_reset(gateway, upstream, fake, budgeted) -> None:
    # 1,000 output tokens of alpha are 0.01 USD; a request may take up to 500 tokens, 0.005 USD and a little.
    usage = {"prompt_tokens": 10, "completion_tokens": 500, "total_tokens": 510}
    upstream.script("m-alpha", fake.reply(fake.completion("fine", usage=usage)))
    key = budgeted(limit_usd=Decimal("0.05"))
    answers = [gateway.chat(max_tokens=500, headers=bearer(key)) for _ in range(14)]
    statuses = [answer.status_code for answer in answers]
    served = statuses.count(200)
    assert statuses == [200] * served + [429] * (14 - served)
    assert 8 <= served <= 9, "nine requests at .00502 fit into .05, none more"
    refused = answers[-1]
    assert refused.json()["error"]["code"] == "budget_exceeded"
    assert int(refused.headers["retry-after"]) >= 1
    assert spent(gateway, key) == served * Decimal("0.00502")
    assert gateway.record(refused)["outcome"]["status"] == "rejected"


def test_many_at_once_never_overspend(gateway, upstream, fake, budgeted) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 500, "total_tokens": 510}
    upstream.script("m-alpha", fake.reply(fake.completion("fine", usage=usage)))
    key = budgeted(limit_usd=Decimal("0.05"))
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: gateway.chat(max_tokens=500, headers=bearer(key)), range(40)))
    assert {answer.status_code for answer in answers} == {200, 429}
    assert spent(gateway, key) <= Decimal("0.05")


def test_a_worker_without_a_price_spends_at_the_dearest(gateway, upstream, fake, budgeted) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 100, "total_tokens": 110}
    upstream.script("m-gamma", fake.reply(fake.completion("fine", usage=usage)))
    key = budgeted(limit_usd=Decimal("0.01"))
    statuses = [gateway.chat(model="gamma", max_tokens=100, headers=bearer(key)).status_code for _ in range(30)]
    assert statuses[0] == 200
    assert statuses[-1] == 429, "an unknown price is no way around a budget"
    assert statuses.count(200) <= 10


def test_a_request_that_failed_gives_back_what_it_had_reserved(gateway, upstream, fake, budgeted) -> None:
    upstream.script("m-alpha", fake.reply(b'{"error":{"message":"no"}}', 400))
    key = budgeted(limit_usd=Decimal("0.011"))
    for _ in range(6):
        assert gateway.chat(max_tokens=500, headers=bearer(key)).status_code == 400
    upstream.script("m-alpha", fake.text("fine"))
    assert gateway.chat(max_tokens=500, headers=bearer(key)).status_code == 200


def test_requests_per_minute(gateway, upstream, budgeted) -> None:
    key = budgeted(requests_per_minute=5)
    statuses = [gateway.chat(headers=bearer(key)).status_code for _ in range(12)]
    assert statuses[:5] == [200] * 5
    assert statuses.count(429) >= 5
    refused = gateway.chat(headers=bearer(key))
    assert refused.json()["error"]["code"] == "rate_limit_exceeded"
    assert 1 <= int(refused.headers["retry-after"]) <= 60


def test_a_key_without_a_budget_is_untouched(gateway, upstream, budgeted) -> None:
    budgeted(limit_usd=Decimal("0"))
    other = gateway.key()
    assert gateway.chat(headers=bearer(other)).status_code == 200
    assert gateway.chat().status_code == 200
