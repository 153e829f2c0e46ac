"""Cascade: who is asked when, what is logged of each attempt, and what happens when one of them is down."""

from __future__ import annotations

import pytest

from harness.engine.events import Done, Failed
from harness.engine.limits import Limits
from harness.engine.patterns.cascade import Cascade, CascadeSettings
from pointsman.errors import UpstreamError

TIERS = (("ada",), ("bob",), ("cyd",))


def say(scores, down=()):
    """Workers answer with their names; `bob` verifies with these scores in turn."""
    left = list(scores)

    def saying(name, text):
        if "verifier of a team" in text:
            return left.pop(0)
        return UpstreamError("server", f"{name} is down") if name in down else f"by {name}"

    return saying


def cascade(**changes):
    return Cascade(CascadeSettings(TIERS, **{"verifier": "bob", **changes}))


async def test_the_first_tier_whose_score_is_enough_answers(team):
    one = team(say(["Score: 0.2. No.", "Score: 0.8. Yes."]))
    done = await one.run(cascade(threshold=0.6))
    assert (done.answer, done.worker, done.reason) == ("by bob", "bob", "tier 2")
    rows = [(row["kind"], row["chosen"], row["turn"]) for row in one.log.decisions[1:]]
    assert rows == [
        ("route", "ada", 0), ("role", "bob", 0), ("escalate", "escalate", 0),
        ("route", "bob", 1), ("role", "bob", 1), ("escalate", "accept", 1),
    ]  # fmt: skip
    plans = [row["plan"] for row in one.log.decisions if row["kind"] == "escalate"]
    assert plans[0] == {"tier": 1, "score": 0.2, "threshold": 0.6, "threshold_from": "configuration"}
    assert [row["score"] for row in one.log.outcomes if row["score"] is not None] == [0.2, 0.2, 0.8, 0.8]


async def test_each_attempt_hangs_below_the_choice_to_escalate(team):
    one = team(say(["Score: 0.1", "Score: 0.1"]))
    done = await one.run(cascade())
    assert (done.answer, done.reason, done.totals.calls) == ("by cyd", "last tier", 5)
    by_id = {row["id"]: row for row in one.log.decisions}
    chain, row = [], one.log.decisions[-1]
    while row is not None:
        chain.append(row["kind"])
        row = by_id.get(row["parent_id"])
    assert chain == ["route", "escalate", "route", "escalate", "route", "pattern"]


async def test_a_certified_threshold_says_so_on_record(team):
    one = team(say(["Score: 0.9"]))
    await one.run(cascade(threshold=0.85, certified=True))
    (row,) = [row for row in one.log.decisions if row["kind"] == "escalate"]
    assert row["plan"]["threshold_from"] == "certificate"


async def test_a_worker_that_is_down_has_its_tier_escalated_and_nobody_stands_in(team):
    one = team(say(["Score: 1"], down={"ada"}))
    done = await one.run(cascade())
    assert (done.answer, done.reason) == ("by bob", "tier 2")
    assert [name for name, _ in one.seen] == ["ada", "bob", "bob"]


async def test_a_score_that_cannot_be_read_is_not_enough(team):
    one = team(say(["It looks fine to me.", "Score: 0.9"]))
    done = await one.run(cascade())
    assert done.answer == "by bob"
    assert [row["reason"] for row in one.log.outcomes if row["reason"] == "unparseable"] == ["unparseable"]


async def test_where_the_last_tier_is_down_the_best_scored_answer_so_far_is_given(team):
    one = team(say(["Score: 0.4", "Score: 0.3"], down={"cyd"}))
    done = await one.run(cascade())
    assert isinstance(done, Done)
    assert (done.answer, done.reason) == ("by ada", "last tier: no answer")


async def test_all_down_is_a_failure_with_the_last_fault(team):
    one = team(say([], down={"ada", "bob", "cyd"}))
    done = await one.run(cascade())
    assert isinstance(done, Failed) and done.fault.fault == "server"


async def test_a_limit_of_calls_ends_it_with_the_answer_that_there_is(team):
    one = team(say(["Score: 0.1"]))
    done = await one.run(cascade(), limits=Limits(calls=2))
    assert (done.answer, done.reason) == ("by ada", "limit: calls")


async def test_a_tier_of_several_is_the_routers_choice_among_them(team):
    one = team(say([]))
    done = await one.run(Cascade(CascadeSettings((("ada", "cyd"),))), one.request("Ask bob or cyd."))
    assert done.answer == "by cyd"
    row = one.log.decisions[1]
    assert row["eligible"] == {"ada": None, "bob": "not_named", "cyd": None}
    assert set(row["probabilities"]) == {"ada", "cyd"}


async def test_the_verifier_sees_the_request_and_the_latest_answer_alone(team):
    one = team(say(["Score: 0.1", "Score: 0.9"]))
    await one.run(cascade(), one.request("The question."))
    second = [text for text in one.texts() if "verifier of a team" in text][1]
    assert "The question." in second and "by bob" in second and "by ada" not in second


@pytest.mark.parametrize("stream", [False, True])
async def test_only_the_last_tier_is_streamed_and_the_answer_is_told_once(team, stream):
    one = team(say(["Score: 0.1", "Score: 0.1"]))
    done = await one.run(cascade(), stream=stream)
    from harness.engine.events import Delta

    assert "".join(delta.text for delta in one.of(Delta)) == done.answer == "by cyd"
