"""Vote: answers at the same time, what counts as the same, who decides, and what is left for learning."""

from __future__ import annotations

import asyncio

import pytest

from harness.engine.patterns.ballots import counted_as
from harness.engine.patterns.vote import Vote, VoteSettings
from harness.engine.workers import LocalWorkers
from pointsman.errors import UpstreamError

ALL = ("ada", "bob", "cyd")


async def test_the_majoritys_answer_is_given_whatever_its_wording(team):
    said = {"ada": "Answer: 41", "bob": "I get it.\nAnswer: 42.", "cyd": "**Answer:** 42"}
    one = team(lambda name, text: said[name])
    done = await one.run(Vote(VoteSettings(workers=ALL)))
    assert (done.answer, done.worker, done.reason) == ("I get it.\nAnswer: 42.", "bob", "2 of 3 agree")
    vote = one.log.decisions[-1]
    assert (vote["kind"], vote["chosen"], vote["plan"]["method"]) == ("vote", "bob", "majority")
    assert [(one["worker"], one["group"]) for one in vote["plan"]["answers"]] == [("ada", 0), ("bob", 1), ("cyd", 1)]
    answers = {row["id"]: row for row in one.log.decisions if row["kind"] == "route"}
    assert {entry["decision"] for entry in vote["plan"]["answers"]} == set(answers)
    assert all(row["forced"] == "plan" and row["propensity"] == 1.0 for row in answers.values())


@pytest.mark.parametrize(("reply", "counted"), [
    ("Answer: 42.", "42"), ("first answer: 1\nAnswer: **Seven  Days**", "seven days"), ("It is so!", "it is so"),
    ("<think>Answer: 9</think>Answer: 8", "8"),
])  # fmt: skip
def test_what_a_reply_counts_as(reply, counted):
    assert counted_as(reply) == counted


async def test_the_router_draws_other_workers_for_each_answer(team):
    one = team(lambda name, text: name)
    await one.run(Vote(VoteSettings(n=3)), one.request("bob"))
    draws = [row for row in one.log.decisions if row["kind"] == "route" and row["forced"] != "plan"]
    assert draws[0]["chosen"] == "bob" and {row["chosen"] for row in draws} == set(ALL)
    assert draws[1]["eligible"]["bob"] == "drawn already"
    assert sorted(name for name, _ in one.seen) == sorted(ALL)


async def test_the_answers_are_under_way_at_the_same_time(team):
    under_way, most = 0, 0

    async def say(name, text):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.01)
        under_way -= 1
        return "Answer: 1"

    one = team(say)
    await one.run(Vote(VoteSettings(n=5, workers=("ada",))))
    assert most == 5


async def test_a_worker_that_is_asked_again_gets_another_seed(team):
    fields = []

    class Listening(LocalWorkers):
        async def call(self, worker, messages, **options):
            fields.append(options["fields"].get("seed"))
            return await super().call(worker, messages, **options)

    async def answering(name, messages, tools):
        return "Answer: 1"

    one = team(workers=Listening(answering))
    await one.run(Vote(VoteSettings(n=4, same=True)))
    assert fields[0] is None and len(set(fields)) == 4
    assert len({row["chosen"] for row in one.log.decisions if row["kind"] == "route"}) == 1


async def test_one_that_is_down_has_no_vote_and_nobody_votes_in_its_place(team):
    said = {"ada": "Answer: 1", "bob": UpstreamError("server", "down"), "cyd": "Answer: 2"}
    one = team(lambda name, text: said[name])
    done = await one.run(Vote(VoteSettings(workers=ALL)))
    assert (done.answer, done.totals.calls, done.reason) == ("Answer: 1", 3, "1 of 3 agree")
    assert [entry["group"] for entry in one.log.decisions[-1]["plan"]["answers"]] == [0, None, 1]


async def test_a_judge_chooses_by_letter_and_falls_back_to_the_majority(team):
    judged = []

    def say(name, text):
        if "judge of several answers" not in text:
            return f"Answer: {name}"
        letter = next(line[-1] for line, after in zip(text.splitlines(), text.splitlines()[1:], strict=False)
                      if after == "Answer: cyd")  # fmt: skip
        judged.append(letter)
        return f"{letter}\nIt is better than A and B." if len(judged) == 1 else "Both are good."

    one = team(say)
    settings = VoteSettings(workers=ALL, method="judge", judge="bob")
    done = await one.run(Vote(settings))
    assert (done.answer, done.reason) == ("Answer: cyd", "judged")
    assert one.log.decisions[-1]["plan"]["method"] == "judge"
    again = await one.run(Vote(settings))
    assert (again.answer, again.reason) == ("Answer: ada", "1 of 3 agree")


async def test_nobody_is_asked_to_judge_what_all_agree_on(team):
    one = team(lambda name, text: "Answer: 7")
    done = await one.run(Vote(VoteSettings(workers=ALL, method="judge", judge="bob")))
    assert (done.totals.calls, done.reason) == (3, "3 of 3 agree")
