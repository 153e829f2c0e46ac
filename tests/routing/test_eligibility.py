"""Eligibility: each reason, their order, and the health mask."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from harness.routing.eligibility import Needs, eligible
from pointsman.pool import Endpoint, Pool, Price, Worker


def worker(name: str, **more: Any) -> Worker:
    return Worker(name, "card", "m", (Endpoint("http://127.0.0.1:1"),), **more)


def price(input: str, output: str) -> Price:
    return Price(Decimal(input), Decimal(output), Decimal(0))


ALL = frozenset({"tools", "images", "audio", "json_schema", "logprobs"})
POOL = Pool(
    (
        worker("bare"),
        worker("full", capabilities=ALL, tags=frozenset({"eu", "fast"}), context_window=1000, price=price("1", "2")),
        worker(
            "tools",
            capabilities=frozenset({"tools"}),
            tags=frozenset({"eu"}),
            max_output_tokens=100,
            price=price("10", "20"),
        ),
    )
)


def well(name: str) -> bool:
    return True


@pytest.mark.parametrize(
    ("needs", "reasons"),
    [
        (Needs(), [None, None, None]),
        (Needs(tools=True), ["no_tools", None, None]),
        (Needs(images=True), ["no_images", None, "no_images"]),
        (Needs(audio=True), ["no_audio", None, "no_audio"]),
        (Needs(json_schema=True), ["no_json_schema", None, "no_json_schema"]),
        (Needs(logprobs=True), ["no_logprobs", None, "no_logprobs"]),
        (Needs(tools=True, images=True), ["no_tools", None, "no_images"]),
        (Needs(prompt_tokens=900, output_tokens=100), [None, None, None]),
        (Needs(prompt_tokens=900, output_tokens=101), [None, "context_window", None]),
        (Needs(prompt_tokens=1001), [None, "context_window", None]),
        (Needs(tags=frozenset({"eu"})), ["tag:eu", None, None]),
        (Needs(tags=frozenset({"fast", "eu"})), ["tag:eu", None, "tag:fast"]),
        (Needs(allowed=frozenset({"full"})), ["not_allowed", None, "not_allowed"]),
        (Needs(allowed=frozenset()), ["not_allowed", "not_allowed", "not_allowed"]),
        (Needs(excluded=frozenset({"full", "x"})), [None, "excluded", None]),
        (Needs(allowed=frozenset({"full"}), excluded=frozenset({"full"})), ["not_allowed", "excluded", "not_allowed"]),
        # 500 in and 500 out: `full` 0.0015; `tools`, which writes at most 100, 0.007; `bare`, as the dearest, 0.015
        (Needs(prompt_tokens=500, output_tokens=500, budget=Decimal("0.0015")), ["budget", None, "budget"]),
        (Needs(prompt_tokens=500, output_tokens=500, budget=Decimal("0.0014")), ["budget", "budget", "budget"]),
        (Needs(prompt_tokens=500, output_tokens=500, budget=Decimal("0.007")), ["budget", None, None]),
        (Needs(prompt_tokens=500, output_tokens=500, budget=Decimal("0.015")), [None, None, None]),
    ],
)
def test_reasons(needs: Needs, reasons: list[str | None]) -> None:
    found = eligible(POOL, needs, well)
    assert list(found.reasons) == ["bare", "full", "tools"]
    assert list(found.reasons.values()) == reasons
    assert [item.name for item in found.workers] == [name for name, why in found.reasons.items() if why is None]
    assert not found.health_lifted


def test_without_any_price_nothing_fits_a_budget() -> None:
    pool = Pool((worker("x"), worker("y")))
    found = eligible(pool, Needs(prompt_tokens=1, budget=Decimal(1000)), well)
    assert set(found.reasons.values()) == {"budget"}
    assert found.workers == ()


def test_the_unhealthy_are_masked() -> None:
    found = eligible(POOL, Needs(), lambda name: name != "full")
    assert found.reasons == {"bare": None, "full": "unhealthy", "tools": None}
    assert [item.name for item in found.workers] == ["bare", "tools"]


def test_where_all_that_are_left_are_unhealthy_the_mask_is_lifted() -> None:
    found = eligible(POOL, Needs(tools=True), lambda name: name == "bare")
    assert found.health_lifted
    assert found.reasons == {"bare": "no_tools", "full": None, "tools": None}
    assert [item.name for item in found.workers] == ["full", "tools"]


def test_nothing_is_lifted_where_nobody_is_fit() -> None:
    found = eligible(POOL, Needs(allowed=frozenset()), lambda name: False)
    assert (found.workers, found.health_lifted) == ((), False)


def test_health_is_asked_only_of_those_that_fit() -> None:
    asked: list[str] = []

    def healthy(name: str) -> bool:
        asked.append(name)
        return True

    eligible(POOL, Needs(images=True), healthy)
    assert asked == ["full"]


def test_where_nobody_is_well_those_who_cool_down_come_before_those_who_are_down() -> None:
    offered = Pool(tuple(Worker(name, "card", "m", (Endpoint("http://127.0.0.1:1"),)) for name in ("a", "b", "c")))
    found = eligible(offered, Needs(), lambda name: False, lambda name: name == "b")
    assert found.health_lifted
    assert [worker.name for worker in found.workers] == ["a", "c"]
    assert found.reasons == {"a": None, "b": "unhealthy", "c": None}
    everyone = eligible(offered, Needs(), lambda name: False, lambda name: True)
    assert [worker.name for worker in everyone.workers] == ["a", "b", "c"]
