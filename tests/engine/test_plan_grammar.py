"""The plan's grammar: what is written is read back, whatever is around it; what may not run is told, not guessed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.engine.plan.grammar import Plan, Step, plan_of, problems_of
from harness.engine.plan.parse import parse
from harness.engine.plan.render import render

NAMES = ("ada", "bob-7b", "cyd/large")
OPTIONS = dict(zip("ABC", NAMES, strict=True))
LETTERS = {name: letter for letter, name in OPTIONS.items()}
TWO = Plan((Step("bob-7b", "Work it out."), Step("ada", "Put it in words.", (1,))))
TEXT = 'workers = ["B", "A"]\nsubtasks = ["Work it out.", "Put it in words."]\naccess = ["none", [1]]'


@st.composite
def plans(draw):
    """Plans that may run: every step but the last is seen by a later one."""
    count = draw(st.integers(1, 5))
    texts = st.text(min_size=1, max_size=80).filter(str.strip)
    steps = []
    for number in range(1, count + 1):
        earlier = st.lists(st.integers(1, number - 1), unique=True) if number > 1 else st.just([])
        access = draw(st.one_of(st.just("all"), earlier.map(tuple)))
        if number == count and count > 1:
            access = draw(st.sampled_from(["all", tuple(range(1, count))]))
        steps.append(Step(draw(st.sampled_from(NAMES)), draw(texts), access))
    return Plan(tuple(steps))


@given(plans(), st.booleans())
@settings(max_examples=200, deadline=None)
def test_what_is_rendered_is_parsed_back(plan, named):
    parsed = parse(render(plan, {} if named else LETTERS), OPTIONS)
    assert parsed.problems == ()
    assert parsed.plan == plan
    assert parsed.status == "ok"
    assert plan_of(json.loads(json.dumps(plan.as_json()))) == plan


@pytest.mark.parametrize("subtask", [
    "</think> done", "<think>hm", "a\u200bb\ufeff", "workers = [\"C\"]", "x]] \" ' \\ \n[1, [2", "[[ ## plan ## ]]",
    "\ud83d",
])  # fmt: skip
def test_subtasks_that_look_like_something_else(subtask):
    plan = Plan((Step("ada", subtask), Step("ada", f"again {subtask}", "all")))
    assert parse(render(plan, LETTERS), OPTIONS).plan == plan


def test_the_rendering_is_three_lines_with_letters():
    assert render(TWO, LETTERS) == TEXT


@pytest.mark.parametrize("reply", [
    f"[[ ## plan ## ]]\n{TEXT}\n\n[[ ## completed ## ]]",
    f"<think>workers = [\"C\"]</think>\n{TEXT}",
    f"Let me think. Perhaps workers = [\"C\", \"C\"] would do, but no.\n\n```python\n{TEXT}\n```\nThat is my plan.",
    TEXT.replace(" = ", ": "),
    TEXT.replace("\n", "\n\n").replace("[\"B\", \"A\"]", "[\n  \"B\",\n  \"A\",\n]".replace(",\n]", "\n]")),
    "- **workers** = ['B', 'A']\n- **subtasks** = ['Work it out.', 'Put it in words.']\n- **access** = [[], [1]]",
    "models = ['Option B', 'a']\nsubtasks = ['Work it out.', 'Put it in words.']\naccess_list = [None, 1]",
    'workers = ["BOB_7B", "ada"]\nsubtasks = ["Work it out.", "Put it in words."]\naccess = ["none", "1"]',
    json.dumps({"workers": ["B", "A"], "subtasks": ["Work it out.", "Put it in words."], "access": [[], ["step 1"]]}),
])  # fmt: skip
def test_wrapped_plans_are_read(reply):
    parsed = parse(reply, OPTIONS)
    assert parsed.problems == ()
    assert parsed.plan == TWO


def test_a_plan_in_prose_counts_as_repaired():
    assert parse(f"Here it is:\n{TEXT}", OPTIONS).status == "repaired"
    assert parse(TEXT, OPTIONS).status == "ok"


@pytest.mark.parametrize(("reply", "problem"), [
    (None, "expected a plan, got no text"),
    ("<think>workers", "expected a plan, got no text"),
    ("I would ask Bob.", "expected a list behind `workers =`, found none"),
    ('workers = ["A"]\nsubtasks = ["x"]', "expected a list behind `access =`, found none"),
    ('workers = ["A", "B"]\nsubtasks = ["x"]\naccess = []',
     "expected three lists of one length, got: workers has 2, subtasks 1, access 0"),
    ('workers = ["Z"]\nsubtasks = ["x"]\naccess = ["none"]',
     "step 1: 'Z' is no worker here, expected one of the options A, B, C"),
    ('workers = [1]\nsubtasks = ["x"]\naccess = ["none"]',
     "step 1: 1 is no worker here, expected one of the options A, B, C"),
    ('workers = ["1"]\nsubtasks = ["x"]\naccess = ["none"]', "step 1: '1' is no worker here"),
    ('workers = ["A or B"]\nsubtasks = ["x"]\naccess = ["none"]', "step 1: 'A or B' is no worker here"),
    ('workers = ["A"]\nsubtasks = [" "]\naccess = ["none"]', "step 1: expected a subtask, got an empty text"),
    ('workers = ["A"]\nsubtasks = [7]\naccess = ["none"]', "step 1: expected a subtask in words, got 7"),
    ('workers = ["A"]\nsubtasks = ["x"]\naccess = ["some"]',
     "step 1: expected the access none, all or a list of earlier steps, got ['some']"),
    ('workers = ["A", "B"]\nsubtasks = ["x", "y"]\naccess = [[2], [1]]',
     "step 1: its access list names step 2, expected only earlier steps"),
    ('workers = ["A"]\nsubtasks = ["x"]\naccess = [[1]]',
     "step 1: its access list names step 1, expected only earlier steps"),
    ('workers = ["A", "B"]\nsubtasks = ["x", "y"]\naccess = ["none", [0]]',
     "step 2: its access list names step 0; steps are counted from 1"),
    ('workers = ["A", "B"]\nsubtasks = ["x", "y"]\naccess = ["none", "none"]',
     "step 1: no later step sees its output; name it in an access list or leave it out"),
    (f"workers = {json.dumps(['A'] * 50)}\nsubtasks = {json.dumps(['x'] * 50)}\naccess = {json.dumps(['all'] * 50)}",
     "expected at most 5 steps, got 50"),
    ("workers = []\nsubtasks = []\naccess = []", "expected at least one step, got none"),
    ("workers = [" + "[" * 5000 + "\nsubtasks = []\naccess = []", "expected a list behind `workers =`, found none"),
])  # fmt: skip
def test_plans_that_may_not_run_say_why(reply, problem):
    parsed = parse(reply, OPTIONS)
    assert parsed.plan is None
    assert any(problem in line for line in parsed.problems), parsed.problems


def test_empty_lists_return_the_previous_answer_where_that_is_allowed():
    parsed = parse("workers = []\nsubtasks = []\naccess = []", OPTIONS, empty=True)
    assert parsed.plan == Plan(())


def test_a_look_alike_letter_of_another_script_names_nobody():
    parsed = parse('workers = ["А"]\nsubtasks = ["x"]\naccess = ["none"]', OPTIONS)
    assert parsed.plan is None


@pytest.mark.parametrize(("max_steps", "fits"), [(2, True), (1, False)])
def test_the_limit_of_steps_is_a_setting(max_steps, fits):
    assert (parse(TEXT, OPTIONS, max_steps=max_steps).plan is not None) == fits
    assert (problems_of(TWO, NAMES, max_steps=max_steps) == []) == fits


def test_which_steps_are_read():
    plan = Plan((Step("ada", "a"), Step("ada", "b"), Step("ada", "c", "all"), Step("ada", "d", (3, 1, 3))))
    assert [plan.reads(number) for number in (1, 2, 3, 4)] == [(), (), (1, 2), (1, 3)]
