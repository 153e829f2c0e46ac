"""Trinity's protocol: what each role sees, who comes next, what a verdict is, when and why it ends."""

from __future__ import annotations

from collections import Counter

import pytest

from harness.engine.events import CallEnded, Decided, Delta, Done, Failed
from harness.engine.patterns.roles import Role, suggestion_of
from harness.engine.patterns.trinity import Trinity, TrinitySettings
from harness.engine.patterns.verdict import score_of, verdict_of
from pointsman.errors import UpstreamError

QUESTION = "What is the secret of ada?"


def part_of(text):
    """The role that a worker was told to take, by the words of its message."""
    told = text.rpartition("### Your role\n")[2]
    return "thinker" if "thinker of a team" in told else "verifier" if "verifier of a team" in told else "solver"


class Script:
    """Replies by role, one after another; the last of each repeats."""

    def __init__(self, **replies):
        self.replies = {role: list(texts) for role, texts in replies.items()}
        self.turns = []

    def __call__(self, name, text):
        part = part_of(text)
        self.turns.append(part)
        texts = self.replies[part]
        return texts.pop(0) if len(texts) > 1 else texts[0]


@pytest.mark.parametrize(("reply", "verdict"), [
    ("ACCEPT", "accept"), ("accept. It holds.", "accept"), ("  **ACCEPT**: fine", "accept"), ("> Accept", "accept"),
    ("<think>REVISE?</think>ACCEPT", "accept"), ("`ACCEPT`", "accept"), ("ACCEPT\nREVISE the wording", "accept"),
    ("REVISE: the sum is off", "revise"), ("Reject, no.", "revise"), ("[REVISE]", "revise"),
    ("ACCEPTABLE", "unparseable"), ("Acceptance is near", "unparseable"), ("I would ACCEPT this", "unparseable"),
    ("The verdict: ACCEPT", "unparseable"), ("not ACCEPT", "unparseable"), ("", "unparseable"), (None, "unparseable"),
    ("ACCEPT or REVISE? I cannot say", "unparseable"), ("ACCEPT/REVISE", "unparseable"),
    ("Looks good to me.", "unparseable"),
])  # fmt: skip
def test_a_verdict_stands_at_the_start_as_a_whole_word(reply, verdict):
    assert verdict_of(reply) == verdict


@pytest.mark.parametrize(("reply", "score"), [
    ("0.8", 0.8), ("Score: 0.75. Fine", 0.75), ("**Score:** 1", 1.0), ("80%", 0.8), ("7/10 because", 0.7), ("0", 0.0),
    ("score = .5", None), ("8", None), ("1.5", None), ("-0.5", None), ("It is 0.8", None), ("", None), (None, None),
    ("7/0", None), ("120%", None), ("0.8.1", None), ("2023 was", None),
])  # fmt: skip
def test_a_score_stands_at_the_start_from_0_to_1(reply, score):
    assert score_of(reply) == score


@pytest.mark.parametrize(("reply", "suggestion", "role"), [
    ("Suggestion: add them\nNext role: verifier", "add them", "verifier"),
    ("**Suggestion:** add\nthen double\n**Next role:** Solver", "add\nthen double", "solver"),
    ("Just add them.", "Just add them.", None),
    ("Next role: solver", "", "solver"),
    ("Suggestion: x\nNext role: thinker", "x", None),
    ("<think>Next role: verifier</think>Suggestion: y", "y", None),
])  # fmt: skip
def test_a_thinkers_suggestion_and_the_role_it_names(reply, suggestion, role):
    assert suggestion_of(reply) == (suggestion, role)


async def test_think_solve_verify_accept(team):
    script = Script(
        thinker=["Suggestion: look inside\nNext role: solver"], solver=["It is S."], verifier=["ACCEPT yes"]
    )
    one = team(script)
    done = await one.run(Trinity(), one.request(QUESTION))
    assert script.turns == ["thinker", "solver", "verifier"]
    assert (done.answer, done.reason) == ("It is S.", "accepted")
    assert [(event.role, event.turn, event.kind) for event in one.of(Decided)] == [
        ("thinker", 1, "role"), ("solver", 2, "role"), ("verifier", 3, "role"),
    ]  # fmt: skip
    reasons = {row["id"]: (row["reason"], row["score"]) for row in one.log.outcomes}
    by_turn = {row["turn"]: reasons[row["id"]] for row in one.log.decisions}
    assert by_turn == {0: ("accepted", None), 1: ("suggests solver", None), 2: (None, None), 3: ("accept", 1.0)}


async def test_what_each_role_sees(team):
    script = Script(
        thinker=["Suggestion: THOUGHT1\nNext role: solver", "Suggestion: THOUGHT2\nNext role: solver"],
        solver=["SOLVED1", "SOLVED2"],
        verifier=["REVISE WHY1", "ACCEPT WHY2"],
    )
    one = team(script)
    one_more = TrinitySettings(max_turns=6)
    await one.run(Trinity(one_more), one.request(QUESTION))
    assert script.turns == ["thinker", "solver", "verifier", "thinker", "solver", "verifier"]
    marks = ("THOUGHT1", "THOUGHT2", "SOLVED1", "SOLVED2", "WHY1", "WHY2")
    seen = [{mark for mark in marks if mark in text} for text in one.texts()]
    assert seen == [
        set(),  # the thinker: the request, and no answer yet
        {"THOUGHT1"},  # the solver: the request and the suggestion
        {"SOLVED1"},  # the verifier: the request and the answer, not the suggestion
        {"SOLVED1"},  # the thinker: the latest answer, not what the verifier said of it
        {"THOUGHT2"},  # the solver: the newest suggestion alone, neither its answer nor the verdict
        {"SOLVED2"},
    ]
    assert all(text.startswith(QUESTION) for text in one.texts())


async def test_a_solver_without_a_suggestion_sees_the_clients_messages_and_nothing_else(team):
    one = team(Script(thinker=["x"], solver=["S"], verifier=["ACCEPT"]))
    two = TrinitySettings(roles=(Role("solver", "solver"), Role("verifier", "verifier")))
    request = one.request(
        QUESTION, messages=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
    )
    await one.run(Trinity(two), request)
    assert one.seen[0][1] == request.messages
    assert one.log.calls[0]["messages"] is None
    verifier = one.seen[1][1]
    assert verifier[0] == {"role": "system", "content": "Be brief."}
    assert [message["role"] for message in verifier] == ["system", "user"]
    assert one.log.calls[1]["messages"] == verifier


async def test_routers_see_the_solvers_answers_and_no_other_roles_words(team):
    script = Script(thinker=["Suggestion: THOUGHT"], solver=["SOLVED"], verifier=["REVISE WHY"])
    one = team(script)
    await one.run(Trinity(), one.request(QUESTION))
    contexts = [ask.context for ask in one.router.asked]
    assert len(contexts) == 5
    assert not any("THOUGHT" in context or "WHY" in context for context in contexts)
    assert ["SOLVED" in context for context in contexts] == [False, False, True, True, True]
    assert "Turn 4 of at most 5. Roles taken so far: thinker, solver, verifier." in contexts[3]
    assert contexts[1].startswith("The worker is wanted as solver: writes an answer.")
    assert all(ask.text == QUESTION for ask in one.router.asked)


async def test_after_five_turns_the_answer_is_the_last_solvers(team):
    script = Script(thinker=["Suggestion: x"], solver=["first", "second"], verifier=["REVISE no"])
    one = team(script)
    done = await one.run(Trinity())
    assert script.turns == ["thinker", "solver", "verifier", "thinker", "solver"]
    assert (done.answer, done.reason) == ("second", "turns")


@pytest.mark.parametrize("turns", [1, 2, 3, 4])
async def test_the_number_of_turns_is_a_setting_and_the_last_is_a_solvers(team, turns):
    script = Script(thinker=["Suggestion: x"], solver=["mine"], verifier=["REVISE no"])
    one = team(script)
    settings = TrinitySettings(
        max_turns=turns, roles=TrinitySettings().roles if turns > 1 else (Role("solver", "solver"),)
    )
    done = await one.run(Trinity(settings))
    assert len(script.turns) == turns
    assert done.answer == "mine"


async def test_a_suggestion_is_for_the_next_solver_alone(team):
    script = Script(thinker=["Suggestion: THOUGHT"], solver=["mine"], verifier=["REVISE no"])
    one = team(script)
    await one.run(Trinity(TrinitySettings(max_turns=4)), one.request(QUESTION))
    assert script.turns == ["thinker", "solver", "verifier", "solver"]
    assert ["THOUGHT" in text for text in one.texts()] == [False, True, False, False]
    assert one.texts()[3] == QUESTION


async def test_an_unparseable_verdict_is_no_accept(team):
    script = Script(thinker=["Suggestion: x"], solver=["mine"], verifier=["I think it is fine to ACCEPT"])
    one = team(script)
    done = await one.run(Trinity())
    assert (len(script.turns), done.reason) == (5, "turns")
    assert "unparseable" in {row["reason"] for row in one.log.outcomes}


async def test_the_thinker_names_the_next_role_and_overrides_the_rule(team):
    replies = ["Suggestion: x\nNext role: solver", "Suggestion: judge it\nNext role: verifier"]
    script = Script(thinker=replies, solver=["mine"], verifier=["REVISE no", "ACCEPT"])
    one = team(script)
    done = await one.run(Trinity())
    assert script.turns == ["thinker", "solver", "verifier", "thinker", "verifier"]
    assert (done.answer, done.reason) == ("mine", "accepted")
    forced = [row["roles"]["forced"] for row in one.log.decisions if row["kind"] == "role"]
    assert forced == ["rule", "suggested", "rule", "rule", "suggested"]


async def test_a_verifier_before_any_answer_becomes_solver(team):
    script = Script(thinker=["Suggestion: x\nNext role: verifier"], solver=["mine"], verifier=["ACCEPT"])
    one = team(script)
    await one.run(Trinity())
    assert script.turns == ["thinker", "solver", "verifier"]
    row = next(row for row in one.log.decisions if row["turn"] == 2)
    assert (row["role"], row["roles"]["drawn"], row["roles"]["probabilities"]) == (
        "solver",
        "verifier",
        {"verifier": 1.0},
    )


async def test_a_rejected_answers_worker_does_not_solve_again(team):
    script = Script(thinker=["Suggestion: x"], solver=["mine"], verifier=["REVISE no"])
    one = team(script)
    await one.run(Trinity(), one.request(QUESTION))  # the router prefers ada
    solvers = [event.chosen for event in one.of(Decided) if event.role == "solver"]
    assert solvers[0] == "ada" and solvers[1] != "ada"
    row = next(row for row in one.log.decisions if row["turn"] == 5)
    assert row["eligible"]["ada"] == "rejected"
    assert "ada" not in row["probabilities"]
    again = team(Script(thinker=["Suggestion: x"], solver=["mine"], verifier=["REVISE no"]))
    await again.run(Trinity(TrinitySettings(avoid_rejected=False)), again.request(QUESTION))
    assert [event.chosen for event in again.of(Decided) if event.role == "solver"] == ["ada", "ada"]


async def test_custom_roles_with_prompts_and_workers_of_their_own(team):
    roles = (
        Role("drafter", "solver", "Draft it for the team."),
        Role("critic", "verifier", "Judge as a critic. Begin with ACCEPT or REVISE.", workers=("cyd",)),
    )

    def said(name, text):
        return "ACCEPT" if "Judge as a critic" in text else "draft" if "Draft it for the team." in text else "?"

    one = team(said)
    done = await one.run(Trinity(TrinitySettings(roles=roles), "review"), one.request(QUESTION))
    assert (done.answer, done.reason) == ("draft", "accepted")
    assert [(event.role, event.chosen) for event in one.of(Decided)] == [("drafter", "ada"), ("critic", "cyd")]
    root = one.log.decisions[0]
    assert (root["pattern"], root["chosen"]) == ("trinity", "review")


async def test_an_evaluator_optimiser_stops_at_its_score_and_the_solver_sees_the_critique(team):
    settings = TrinitySettings(
        roles=(Role("solver", "solver"), Role("verifier", "verifier")),
        stop_score=0.8,
        feedback=True,
        avoid_rejected=False,
    )
    script = Script(solver=["first try", "second try"], verifier=["Score: 0.4. TOO SHORT", "Score: 0.85. Good"])
    one = team(script)
    done = await one.run(Trinity(settings))
    assert (done.answer, done.reason) == ("second try", "score")
    second = one.texts()[2]
    assert "first try" in second and "TOO SHORT" in second
    assert "score from 0" in one.texts()[1]
    scores = [row["score"] for row in one.log.outcomes if row["score"] is not None]
    assert scores == [0.4, 0.85]


async def test_one_worker_down_in_the_middle_is_stood_in_for(team):
    script = Script(thinker=["Suggestion: x"], solver=["mine"], verifier=["ACCEPT"])

    def said(name, text):
        return (
            UpstreamError("server", "HTTP 500") if part_of(text) == "solver" and name == "ada" else script(name, text)
        )

    one = team(said)
    done = await one.run(Trinity(), one.request(QUESTION))
    assert (done.answer, done.reason) == ("mine", "accepted")
    assert [event.worker for event in one.of(CallEnded) if event.fault] == ["ada"]
    # There is no fallback in this process: the turn is taken again, by somebody else.
    assert [event.role for event in one.of(Decided)] == ["thinker", "solver", "solver", "verifier"]
    row = next(row for row in one.log.decisions if row["turn"] == 3)
    assert row["eligible"]["ada"] == "failed" and row["chosen"] != "ada"


async def test_all_workers_down_fail_the_run_with_the_last_fault(team):
    one = team(lambda name, text: UpstreamError("connect", "no connection"))
    failed = await one.run(Trinity())
    assert isinstance(failed, Failed)
    assert (failed.reason, failed.status, failed.fault.fault) == ("turns", "upstream_error", "connect")


async def test_roles_asked_of_the_router_are_drawn_and_logged_with_their_probabilities(team):
    script = Script(thinker=["Suggestion: x"], solver=["mine"], verifier=["ACCEPT"])
    one = team(script, roles=True, epsilon=0.3)
    picked = Counter()
    for seed in range(120):
        one.plans = ["A"] * 9
        one.prompts.clear()
        await one.run(Trinity(), one.request(QUESTION, seed=seed))
        assert all("[[ ## roles ## ]]" in prompt[1]["content"] for prompt in one.prompts)
    drawn = [row for row in one.log.decisions if row["kind"] == "role" and row["roles"]["forced"] is None]
    for row in drawn:
        vector = row["roles"]["probabilities"]
        assert sum(vector.values()) == pytest.approx(1)
        assert sorted(vector.values()) == pytest.approx([0.1, 0.1, 0.8])
        assert row["propensity"] == row["probabilities"][row["chosen"]]  # the worker's alone: two draws
        assert len(row["draw"]) == len(row["roles"]["draw"]) == 2
        assert row["draw"] != row["roles"]["draw"]
        picked[row["roles"]["drawn"]] += 1
    assert len(picked) == 3  # letters are in a seeded order, so that one letter is no one role
    assert all(row["router_input_tokens"] >= 100 for row in drawn)


async def test_a_router_that_names_no_role_gives_way_to_the_rule(team):
    one = team(Script(thinker=["Suggestion: x"], solver=["mine"], verifier=["ACCEPT"]), roles=True)
    one.plans = ["none of them", UpstreamError("server", "down"), "Z"]
    done = await one.run(Trinity(TrinitySettings(max_turns=3)))
    assert isinstance(done, Done)
    assert [row["roles"]["forced"] for row in one.log.decisions if row["kind"] == "role"] == ["rule"] * 3


async def test_the_last_turns_answer_is_streamed_and_an_accepted_one_told_whole(team):
    one = team(Script(thinker=["Suggestion: x"], solver=["first", "last"], verifier=["REVISE"]))
    done = await one.run(Trinity(), stream=True)
    assert [event.text for event in one.of(Delta)] == ["last"] == [done.answer]
    assert one.events.index(one.of(Delta)[0]) < one.events.index(one.of(CallEnded)[-1])  # while the call still ran
    two = team(Script(thinker=["Suggestion: x"], solver=["first"], verifier=["ACCEPT"]))
    await two.run(Trinity(), stream=True)
    assert [event.text for event in two.of(Delta)] == ["first"]
    assert two.events[-2] is two.of(Delta)[0]
