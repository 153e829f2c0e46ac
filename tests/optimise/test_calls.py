"""Router calls of a search: each prompt once, counted, paid, kept; failures; and going on after a break."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest

from harness.optimise.budget import Budget, BudgetSpent, Spending
from harness.optimise.calls import CountedLm
from harness.optimise.memory import Memory
from pointsman.errors import UpstreamError, UserError
from pointsman.pool import Price

PRICE = Price(Decimal(1), Decimal(2), Decimal(1))
REPLY = {"choices": [{"message": {"content": "A"}}], "usage": {"prompt_tokens": 1_000, "completion_tokens": 500}}


def spending(**limits):
    return Spending(Budget(**{"calls": None, **limits}), clock=lambda: 0.0)


class Counting:
    def __init__(self, *errors):
        self.bodies, self.errors = [], list(errors)

    async def __call__(self, body):
        self.bodies.append(body)
        await asyncio.sleep(0)
        if self.errors:
            raise self.errors.pop(0)
        return {**REPLY, "id": "x", "created": 5}


def test_a_prompt_is_asked_and_paid_once_even_at_the_same_time(runner):
    lm, spent = Counting(), spending()
    counted = CountedLm(lm, spent, Memory(), PRICE)

    async def both():
        return await asyncio.gather(*(counted({"m": n % 2}) for n in range(6)))

    choice = {"message": {"content": "A"}, "logprobs": None, "finish_reason": None}
    assert runner.run(both())[0] == {"choices": [choice], "usage": REPLY["usage"]}
    runner.run(both())
    assert len(lm.bodies) == spent.calls == 2
    assert spent.money == Decimal("0.004")


def test_the_budget_of_calls_is_never_passed(runner):
    lm, spent = Counting(), spending(calls=3)
    counted = CountedLm(lm, spent, Memory())

    async def many():
        return await asyncio.gather(*(counted({"m": n}) for n in range(5)), return_exceptions=True)

    ends = runner.run(many())
    assert [str(end) for end in ends if isinstance(end, BudgetSpent)] == ["calls", "calls"]
    assert len(lm.bodies) == spent.calls == 3
    assert spent.unpriced == 3


def test_money_and_time_end_a_search_too(runner):
    spent = spending(money=Decimal("0.003"))
    counted = CountedLm(Counting(), spent, Memory(), PRICE)
    for n in range(2):
        runner.run(counted({"m": n}))
    with pytest.raises(BudgetSpent, match="money"):
        runner.run(counted({"m": 2}))
    now = [0.0]
    timed = Spending(Budget(calls=None, seconds=5.0), clock=lambda: now[0], seconds_before=2.0)
    assert timed.spent() is None
    now[0] = 3.5
    assert timed.spent() == "time"
    with pytest.raises(UserError, match="budget: calls must be above 0, got 0"):
        Budget(calls=0)


def test_what_may_pass_is_tried_again_and_what_may_not_is_raised(runner):
    lm = Counting(UpstreamError("server", "busy"), UpstreamError("rate_limited", "slow", retry_after=0.001))
    counted = CountedLm(lm, spending(), Memory(), pause=0.001)
    assert runner.run(counted({"m": 1}))["usage"]["prompt_tokens"] == 1_000
    assert len(lm.bodies) == 3
    with pytest.raises(UpstreamError, match="no key"):
        runner.run(CountedLm(Counting(UpstreamError("auth", "no key")), spending(), Memory())({"m": 1}))


def test_a_refusal_is_kept_as_a_reply(runner):
    lm = Counting(UpstreamError("bad_request", "no logprobs here"))
    memory = Memory()
    for _ in range(2):
        with pytest.raises(UpstreamError, match="no logprobs here"):
            runner.run(CountedLm(lm, spending(), memory)({"m": 1}))
    assert len(lm.bodies) == 1


def test_a_failed_call_is_asked_again_and_counted_once(runner):
    lm, spent = Counting(*[UpstreamError("connect", "gone")] * 3), spending(calls=1)
    counted = CountedLm(lm, spent, Memory(), pause=0.001)
    with pytest.raises(UpstreamError, match="gone"):
        runner.run(counted({"m": 1}))
    assert runner.run(counted({"m": 1}))["usage"]
    assert spent.calls == 1


def test_a_search_goes_on_from_its_folder(runner, tmp_path):
    folder, first = tmp_path / "state", Counting()
    runner.run(CountedLm(first, spending(), Memory(folder, "search-1"), PRICE)({"m": 1}))
    with (folder / "calls.jsonl").open("ab") as file:
        file.write(b'{"prompt": "half a li')  # cut off while it was written
    again, spent = Counting(), spending()
    memory = Memory(folder, "search-1")
    memory.save({"spent": {"seconds": 3}, "stage": "drafts"})
    counted = CountedLm(again, spent, Memory(folder, "search-1"), PRICE)
    runner.run(counted({"m": 1}))
    assert again.bodies == [] and spent.calls == 1 and spent.money == Decimal("0.002")
    assert Memory(folder, "search-1").state == {"spent": {"seconds": 3}, "stage": "drafts"}


def test_costs_are_told_when_calls_are_made_and_not_when_remembered(runner, tmp_path):
    told = []
    for _ in range(2):
        spent = Spending(Budget(calls=None), lambda: 0.0, on_cost=told.append)
        runner.run(CountedLm(Counting(), spent, Memory(tmp_path / "s", "s"), PRICE)({"m": 1}))
    assert told == [Decimal("0.002")]


def test_another_searchs_folder_is_refused(tmp_path):
    Memory(tmp_path / "s", "one")
    with pytest.raises(UserError, match="holds the state of another search"):
        Memory(tmp_path / "s", "two")
