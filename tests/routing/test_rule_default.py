"""The rule and default routers."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from harness.routing.base import Ask, RouterFailed
from harness.routing.default import DefaultRouter
from harness.routing.rule import RuleRouter, fold, has_word
from pointsman.config.model import RuleConfig
from pointsman.pool import Endpoint, Price, Worker


def worker(name: str, price: tuple[str, str] | None = None) -> Worker:
    cost = None if price is None else Price(Decimal(price[0]), Decimal(price[1]), Decimal(0))
    return Worker(name, "card", "m", (Endpoint("http://127.0.0.1:1"),), cost)


POOL = tuple(worker(name) for name in ("a", "b", "c"))


def rule(worker: str, **conditions: Any) -> RuleConfig:
    return RuleConfig(worker=worker, **conditions)


def picked(rules: list[RuleConfig], ask: Ask, workers: tuple[Worker, ...] = POOL) -> str:
    scored = RuleRouter(rules).score_now(ask, workers, 0)
    assert sorted(scored.scores.values()) == [0.0] * (len(workers) - 1) + [1.0]
    assert list(scored.scores) == [item.name for item in workers]
    assert scored.parse_status == "not_parsed"
    return max(scored.scores, key=lambda name: scored.scores[name])


@pytest.mark.parametrize(
    ("text", "word", "there"),
    [
        ("write SQL now", "sql", True),
        ("mysql server", "sql", False),
        ("sqlite", "sql", False),
        ("sql", "sql", True),
        ("sql.", "SQL", True),
        ("(sql)", "sql", True),
        ("no_sql", "sql", False),
        ("sqls sql", "sql", True),
        ("ÉCOLE fermée", "école", True),
        ("e\u0301cole", "école", True),
        ("école", "e\u0301cole", True),
        ("cafe\u0301", "cafe", False),
        ("Straße", "STRASSE", True),
        ("Привет мир", "привет", True),
        ("приветы", "привет", False),
        ("कला", "कल", False),
        ("请翻译这句话", "翻译", True),
        ("データベースを作る", "データベース", True),
        ("แปลภาษาอังกฤษ", "ภาษา", True),
        ("unit tests please", "unit test", False),
        ("a unit test please", "unit test", True),
        ("c++ code", "c++", True),
        ("c++17", "c++", False),
        ("x", "xyz", False),
        ("", "x", False),
    ],
)
def test_whole_words_without_case(text: str, word: str, there: bool) -> None:
    assert has_word(fold(text), fold(word)) is there


def test_the_first_rule_that_holds_and_whose_worker_is_offered_decides() -> None:
    rules = [rule("a", words=["sql", "database"]), rule("b", max_chars=5), rule("c", tags=["vip"]), rule("b")]
    assert picked(rules, Ask("my DATABASE")) == "a"
    assert picked(rules, Ask("hi")) == "b"
    assert picked(rules, Ask("hello you", tags=frozenset({"vip", "x"}))) == "c"
    assert picked(rules, Ask("hello you")) == "b"
    assert picked(rules, Ask("my database"), POOL[1:]) == "b"


def test_all_conditions_of_a_rule_must_hold() -> None:
    rules = [rule("a", words=["sum"], min_chars=5, max_chars=12, tags=["x", "y"]), rule("c")]
    tags = frozenset({"x", "y"})
    assert picked(rules, Ask("sum 1+1", tags=tags)) == "a"
    assert picked(rules, Ask("sum 1+1", tags=frozenset({"x"}))) == "c"
    assert picked(rules, Ask("sum", tags=tags)) == "c"
    assert picked(rules, Ask("sum of 1 and 1", tags=tags)) == "c"
    assert picked(rules, Ask("add 1+1", tags=tags)) == "c"


@pytest.mark.parametrize(("length", "name"), [(4, "c"), (5, "a"), (9, "a"), (10, "c")])
def test_bounds_of_length_are_inclusive(length: int, name: str) -> None:
    assert picked([rule("a", min_chars=5, max_chars=9), rule("c")], Ask("x" * length)) == name


async def test_no_rule_is_a_failure() -> None:
    for rules in ([], [rule("a", words=["sql"])], [rule("gone")]):
        with pytest.raises(RouterFailed, match=r"^no_rule_matched$"):
            await RuleRouter(rules).score(Ask("hello"), POOL, 0)


def test_a_changed_rule_is_a_new_version() -> None:
    first, same, other = RuleRouter([rule("a")]), RuleRouter([rule("a")]), RuleRouter([rule("b")])
    assert first.version.id == same.version.id != other.version.id
    assert (first.version.kind, first.deadline) == ("rule", 0.05)


async def test_the_configured_worker_decides() -> None:
    scored = await DefaultRouter("b").score(Ask("x"), POOL, 0)
    assert dict(scored.scores) == {"a": 0.0, "b": 1.0, "c": 0.0}
    assert scored.flags == ()


@pytest.mark.parametrize("configured", [None, "gone"])
@pytest.mark.parametrize(
    ("workers", "cheapest"),
    [
        ((worker("x", ("1", "9")), worker("y", ("2", "3")), worker("z", ("0.5", "20"))), "y"),
        ((worker("x"), worker("y", ("200", "300"))), "y"),
        ((worker("x"), worker("y")), "x"),
        ((worker("x", ("1", "1")), worker("y", ("2", "0"))), "x"),
        ((worker("x"), worker("free", ("0", "0"))), "free"),
    ],
)
def test_else_the_cheapest_offered(configured: str | None, workers: tuple[Worker, ...], cheapest: str) -> None:
    scored = DefaultRouter(configured).score_now(Ask("x"), workers, 0)
    assert [name for name, score in scored.scores.items() if score == 1.0] == [cheapest]
    assert scored.flags == ("cheapest",)
