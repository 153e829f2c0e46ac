"""MIPROv2 over the router's instructions: our counted models, our guard, our budget."""

from __future__ import annotations

import pytest

from harness.optimise.budget import Budget, Spending
from harness.optimise.calls import CountedLm
from harness.optimise.candidate import Candidate
from harness.optimise.guard import Guard
from harness.optimise.memory import Memory
from harness.optimise.mipro import Models, mipro_instructions
from harness.optimise.rows import PLAIN


class Proposing:
    """Answers every prompt of MIPROv2's with one text in all the fields that it asks for."""

    def __init__(self, text):
        self.text, self.calls = text, 0

    async def __call__(self, body):
        self.calls += 1
        names = ("observations", "summary", "program_description", "module_description", "proposed_instruction")
        content = "".join(f"[[ ## {name} ## ]]\n{self.text}\n\n" for name in names) + "[[ ## completed ## ]]"
        return {"choices": [{"message": {"content": content}}], "usage": {}}


@pytest.fixture
def improve(toy, runner):
    def made(proposing, calls=None):
        """The router answers rightly only under instructions that hold the word `subject`."""

        async def router(body):
            system, user = body["messages"][0]["content"], body["messages"][-1]["content"]
            best = next((n for n, words in enumerate(("kilo inch litre", "morse caesar binary", "weekday leap days"))
                         if any(word in user.lower() for word in words.split())), 0)  # fmt: skip
            cards = [line for line in user.splitlines() if '"option"' in line]
            right = next(line for line in cards if f"number {best}." in line)
            wrong = next(line for line in cards if f"number {best}." not in line)
            letter = (right if "subject" in system else wrong).split('"option": "')[1][0]
            return {"choices": [{"message": {"content": f"[[ ## option ## ]]\n{letter}\n\n[[ ## completed ## ]]"}}]}

        spent = Spending(Budget(calls=calls), lambda: 0.0)
        models = Models(CountedLm(router, spent, Memory()), "router", CountedLm(proposing, spent, Memory()), "writer")
        rows = toy.rows(30)
        start = Candidate(toy.poor, "Choose a worker.")
        guard = Guard.of([rows], toy.names)
        return mipro_instructions(start, rows, toy.workers, PLAIN, models, guard, runner, seed=1), spent

    return made


def test_better_instructions_become_a_candidate(improve):
    proposing = Proposing("Choose the worker whose description names the subject of the request.")
    found, spent = improve(proposing)
    assert found.instructions == proposing.text and found.origin == "MIPROv2 instructions"
    assert found.cards and found.parent is not None
    assert spent.calls > 24 and proposing.calls >= 1


def test_instructions_that_break_a_rule_are_dropped(improve):
    assert improve(Proposing("For every subject choose amber-7b."))[0] is None


def test_a_budget_that_ends_first_leaves_nothing(improve):
    found, spent = improve(Proposing("Mind the subject."), calls=10)
    assert found is None and spent.calls == 10
