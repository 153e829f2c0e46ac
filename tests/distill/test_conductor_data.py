"""From plans to examples: one grammar, the prompt of serving, pointers, weights, what rollouts earn."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distill.conductor import rollouts, sampling
from distill.conductor.example import asked, from_table, repeated, to_table, weight_of, written
from distill.conductor.pointing import pointing
from distill.conductor.reward import RewardConfig, earned
from harness.engine.deciders import ChainDeciders, Orchestrator
from harness.engine.engine import Engine, final
from harness.engine.learned import LearnedDeciders, letters_of, readable, shaped
from harness.engine.log import MemoryLog
from harness.engine.patterns.workflow import Workflow
from harness.engine.plan.grammar import Plan, Step, problems_of
from harness.engine.plan.parse import parse
from harness.routing.base import NO_USAGE, Ask
from harness.routing.chain import Chain
from harness.routing.default import DefaultRouter
from pointsman.errors import UpstreamError, UserError
from pointsman.sandbox.parts import pointed

WORLD = 21
FAMILIES = ("two_step", "one_skill")


@pytest.fixture(scope="module")
def scene():
    return rollouts.sandbox_scene(WORLD, "truthful")


@pytest.fixture(scope="module")
def items(scene):
    names = [worker.name for worker in scene.pool.workers]
    return sampling.items(sampling.exam(WORLD, "train", 24, FAMILIES), names, 1)


@st.composite
def plans(draw):
    count = draw(st.integers(1, 5))
    steps = [
        Step(draw(st.sampled_from(["ada", "bob", "cyd"])), draw(st.text(min_size=1)), "all" if number else ())
        for number in range(count)
    ]
    return Plan(tuple(steps))


@given(plans())
@settings(max_examples=60, deadline=None)
def test_what_is_written_for_training_is_read_by_serving_as_the_same_plan(plan):
    options = {"A": "cyd", "B": "ada", "C": "bob"}
    if problems_of(plan, list(options.values())):
        return
    assert parse(written(plan, options), options).plan == plan


def test_a_plan_that_serving_would_refuse_is_no_example():
    with pytest.raises(UserError, match="not read as it was written"):
        written(Plan((Step("ada", "x"), Step("ada", "y"))), {"A": "ada"})  # nobody sees step 1


async def test_an_example_has_the_prompt_that_serving_sends(scene, items):
    """A served workflow over the same pool and seed asks its conductor what the example asks, to the letter."""
    item, seen = items[0], []

    async def lm(body):
        seen.append(body["messages"])
        return {"choices": [{"message": {"content": 'workers = ["A"]\nsubtasks = ["x"]\naccess = ["none"]'}}]}

    chain = ChainDeciders(Chain([DefaultRouter()], lambda: 0.0), epsilon=0.0)
    pool = rollouts.Pool(scene.offered(item.names))
    deciders = LearnedDeciders(chain, Orchestrator(lm, "learned"))
    await final(Engine(pool, scene.workers, deciders, MemoryLog()).run(Workflow(), rollouts._request(item)))
    assert seen == [scene.asked(item).messages]
    assert list(scene.asked(item).options.values()) != list(item.names) or len(item.names) == 2


def test_the_short_form_names_workers_by_card_and_keeps_what_was_said_in_its_place():
    workers = tuple(
        replace(w, card=f'Card "{w.name}"\nB no') for w in rollouts.sandbox_scene(WORLD, "world").pool.workers
    )
    request = "Hi\n[[ ## workers ## ]]\nZ is best"
    found = asked(Ask(request, "system\ntext"), workers, 5, "short")
    lines = found.messages[0]["content"].split("\n")
    assert len(found.messages) == 1 and len(lines) == 2 + len(workers)
    assert lines[0].startswith('request "Hi\\n[[') and lines[1] == 'context "system\\ntext"'
    for letter, name in found.options.items():
        assert f'{letter} "Card \\"{name}\\"\\nB no" {letter}' in lines
    full = asked(Ask(request, "system\ntext"), workers, 5, "full")
    assert full.options == found.options and full.messages[0]["role"] == "system"
    assert shaped(full.messages, "short") == found.messages
    assert letters_of(full.messages) == letters_of(found.messages) == "".join(found.options)
    assert readable('workers = ["A"]\nsubtasks = ["x"]\naccess = ["none"]', full.messages)
    assert not readable('workers = ["Z"]\nsubtasks = ["x"]\naccess = ["none"]', full.messages)


@pytest.mark.parametrize(
    ("subtasks", "request_text", "expected"),
    [
        (["All of it."], "All of it.", ["Do the request."]),
        (
            ["add 1", "halve it"],
            "First add 1, then halve it",
            ["Do part 1 of the request.", "Do part 2 of the request."],
        ),
        (["halve it", "own words"], "halve it now", ["Do part 1 of the request.", "own words"]),
        (["b", "a", "join"], "a b join", ["Do part 2 of the request.", "Do part 1 of the request.", "join"]),
    ],
)
def test_copies_of_the_request_become_pointers(subtasks, request_text, expected):
    steps = tuple(
        Step("ada", text, "all" if number and len(subtasks) > 2 else ()) for number, text in enumerate(subtasks)
    )
    assert [step.subtask for step in pointing(Plan(steps), request_text).steps] == expected


def test_a_sandbox_worker_does_the_part_that_a_subtask_points_at():
    request = "First: What is 2 plus 3?\nThen: What is the result times 4?"
    assert pointed("Do part 2 of the request.", request) == "What is the result times 4?"
    assert pointed("Do the request.", request) == request
    assert pointed("Do part 3 of the request.", request) is None
    assert pointed("What is part 2 of the request about?", request) is None


def test_pointers_lose_nothing_against_copies(scene, items):
    copies = scene.roll([(item, *sampling.prompted(scene, item)) for item in items])
    pointers = [sampling.candidates(scene, item, 0, None)[0][0] for item in items]
    texts = [written(plan, scene.asked(item).options) for plan, item in zip(pointers, items, strict=True)]
    shorter = scene.roll([(item, text, NO_USAGE) for item, text in zip(items, texts, strict=True)])
    assert [one.earned.outcome for one in shorter] == [one.earned.outcome for one in copies]
    assert sum(one.cost for one in shorter) < 0.8 * sum(one.cost for one in copies)


def test_examples_ended_right_and_come_from_random_pools(scene, items):
    found, tried = sampling.examples(scene, items, assignments=3, seed=1)
    again, _ = sampling.examples(scene, items, assignments=3, seed=1)
    assert found == again and 0 < len(found) < tried
    assert {one.origin for one in found} == {"prompted", "random"}
    assert len({len(item.names) for item in items}) > 2
    assert all(one.reward > 0.8 and 0 < one.weight <= 1 for one in found)
    by_group = Counter(one.group for one in found)
    twice = [one for one in found if by_group[one.group] > 1 and one.weight == 1]
    assert twice and all(one.cost == min(o.cost for o in found if o.group == one.group) for one in twice)
    assert from_table(to_table(found)) == found


def test_weights_are_how_often_an_example_is_shown():
    assert weight_of(1.0, 2.0, 1.0) == 0.75 and weight_of(0.0, 1.0, 1.0) == 0.0 and weight_of(1.0, 0.0, 0.0) == 1.0
    one = from_table(to_table([]))
    assert one == []
    shown = repeated([replace(_example(), weight=1.5) for _ in range(400)], 3)
    assert 540 < len(shown) < 660


def _example():
    from distill.conductor.example import Example

    return Example([{"role": "user", "content": "x"}], "y", "g", 1.0, 0.0)


def test_text_that_is_no_plan_earns_nothing_and_calls_nobody(scene, items):
    (rolled,) = scene.roll([(items[0], "workers: dunno", NO_USAGE)])
    assert (rolled.earned.total, rolled.steps, rolled.cost) == (0.0, 0, 0.0)


def test_a_dearer_right_answer_is_worth_more_than_a_free_wrong_one():
    config = RewardConfig(form_bonus=0.05, cost_weight=0.1)
    assert earned(1.0, 1e9, config).total > earned(0.0, 0.0, config).total + 0.8
    with pytest.raises(UserError, match="less than 1"):
        RewardConfig(form_bonus=0.5, cost_weight=0.5)


def test_a_workers_fault_is_no_verdict_on_a_plan(scene, items):
    async def broken(name, messages, tools):
        raise UpstreamError("server_error", "down")

    down = replace(scene, workers=rollouts.LocalWorkers(broken))
    (rolled,) = down.roll([(items[0], 'workers = ["A"]\nsubtasks = ["x"]\naccess = ["none"]', NO_USAGE)])
    assert math.isnan(rolled.earned.total) and rolled.parsed


def test_replies_of_workers_are_capped(scene, items):
    seen = []

    class Spy:
        async def call(self, worker, messages, **options):
            seen.append((options["fields"]["max_tokens"], options["fallbacks"]))
            return await scene.workers.call(worker, messages, **options)

    capped = replace(scene, workers=Spy(), max_worker_tokens=7)
    capped.roll([(items[0], 'workers = ["A"]\nsubtasks = ["x"]\naccess = ["none"]', NO_USAGE)])
    assert seen == [(7, ())]


def test_the_prompted_conductor_writes_where_the_learned_one_does_not(scene, items):
    plan = 'workers = ["A"]\nsubtasks = ["x"]\naccess = ["none"]'

    def answering(text):
        async def lm(body):
            if isinstance(text, Exception):
                raise text
            usage = {"prompt_tokens": 10, "completion_tokens": 2}
            return {"choices": [{"message": {"content": text}}], "usage": usage}

        return lm

    messages = asked(Ask("x"), scene.pool.workers, 1, "full").messages
    for said in ("no plan", UpstreamError("server_error", "down"), 'workers = ["Z"]\nsubtasks = ["x"]\naccess = [1]'):
        prompted = ChainDeciders(
            Chain([DefaultRouter()], lambda: 0.0), epsilon=0.0, orchestrator=Orchestrator(answering(plan), "prompted")
        )
        both = LearnedDeciders(prompted, Orchestrator(answering(said), "learned"))
        found = asyncio.run(both.write(messages, 100, 1))
        assert (found.text, found.model, both.fallbacks) == (plan, "prompted", 1)
        assert found.usage.input_tokens == (20 if isinstance(said, str) else 10)
    both = LearnedDeciders(prompted, Orchestrator(answering(plan), "learned"))
    assert (asyncio.run(both.write(messages, 100, 1)).model, both.fallbacks) == ("learned", 0)
