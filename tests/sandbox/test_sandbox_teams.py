"""The exam for teams, the workers that obey a team's instructions, and the stand-in that plans: by text alone."""

from __future__ import annotations

import json
import re
import statistics
from random import Random

import pytest

from pointsman.errors import UserError
from pointsman.sandbox import router_llm
from pointsman.sandbox.families import FAMILIES
from pointsman.sandbox.families.team import TEAM_FAMILIES
from pointsman.sandbox.instructions import read
from pointsman.sandbox.parts import about, split
from pointsman.sandbox.planning import plan, role_scores
from pointsman.sandbox.solvers import solve
from pointsman.sandbox.solvers.checkable import mistaken_numbers, solve_checkable
from pointsman.sandbox.tasks import tasks
from pointsman.sandbox.team_program import PERSISTENCE
from pointsman.sandbox.team_tasks import team_tasks
from pointsman.sandbox.truth import truth
from pointsman.sandbox.worker_program import WorkerProgram
from pointsman.sandbox.world import World
from pointsman.verifiers import verify

SEEDS = (1, 2, 1003)
SPLITS = ("train", "validation", "held_out")
SKILLS = {skill for family in FAMILIES for skill in family.skills}


def exam(n=90, **options):
    return [task for seed in SEEDS for split_ in SPLITS for task in team_tasks(seed, split_, n, **options)]


def programs(seed):
    table = truth(seed)
    return {w.name: WorkerProgram(w, seed, table.success[w.name]) for w in World(seed).workers}


def say(program, prompt, **body):
    return program.reply({"messages": [{"role": "user", "content": prompt}], **body}).text


def by_text(task):
    """The answer that a solver which never saw the exam finds, and the skills it took."""
    if (numbers := solve_checkable(task.prompt)) is not None:
        return ", ".join(map(str, numbers)), ("arithmetic",)
    parts, answers, skills = split(task.prompt), [], []
    for part in parts.parts:
        solved = solve(about(part, answers[-1]) if parts.chained and answers else part)
        answers.append(solved.answer)
        skills.append(solved.skill)
    return answers[-1] if parts.chained else "; ".join(answers), tuple(skills)


def test_three_families_of_eight_wordings_half_of_them_held_out():
    assert [family.name for family in TEAM_FAMILIES] == ["two_step", "errands", "checkable"]
    for family in TEAM_FAMILIES:
        assert len({*family.wordings, *family.held_out}) == 8
        assert len(family.held_out) == 4
    assert not {family.name for family in TEAM_FAMILIES} & {family.name for family in FAMILIES}


def test_tasks_for_teams_are_a_function_of_seed_and_split_and_leave_the_worlds_traffic_alone():
    first = list(team_tasks(5, "train", 30))
    assert first == list(team_tasks(5, "train", 30))
    assert [task.family for task in first[:3]] == ["two_step", "errands", "checkable"]
    assert first != list(team_tasks(6, "train", 30))
    prompts = {split_: {task.prompt for task in team_tasks(1, split_, 300)} for split_ in SPLITS}
    assert not prompts["train"] & prompts["validation"] | prompts["train"] & prompts["held_out"]
    assert {task.family for task in tasks(5, "train", 300)} == {family.name for family in FAMILIES}
    with pytest.raises(UserError, match=r"families: 'stories' is none for teams, expected some of \['two_step'"):
        next(team_tasks(1, "train", 1, ["stories"]))


def test_every_wording_is_asked_and_answered_by_text_alone():
    unseen = {wording for family in TEAM_FAMILIES for wording in (*family.wordings, *family.held_out)}
    for task in exam():
        answer, skills = by_text(task)
        assert skills == task.skills, task.prompt
        assert set(skills) <= SKILLS
        assert verify(task.verifier, f"Answer: {answer}") == 1, (task.prompt, answer)
        shape = {w for w in unseen if re.fullmatch(re.sub(r"\\\{\w+\\\}", "(?s:.+)", re.escape(w)), task.prompt)}
        unseen -= shape
    assert not unseen


def test_a_one_skill_task_is_not_taken_for_several():
    for seed in SEEDS:
        for split_ in SPLITS:
            for task in tasks(seed, split_, 200):
                assert not split(task.prompt).several, task.prompt
                assert solve_checkable(task.prompt) is None, task.prompt


def test_mistaken_numbers_are_always_wrong():
    for task in team_tasks(1, "train", 60, ["checkable"]):
        numbers = solve_checkable(task.prompt)
        wrong = mistaken_numbers(numbers, Random(task.id))
        assert verify(task.verifier, f"Answer: {', '.join(map(str, wrong))}") == 0


@pytest.mark.parametrize("family", ["two_step", "errands", "checkable"])
def test_workers_err_as_often_as_their_skills_say(family):
    table = truth(3)
    for name, program in list(programs(3).items())[:3]:
        asked = list(team_tasks(3, "train", 300, [family]))
        got = statistics.mean(verify(task.verifier, say(program, task.prompt)) for task in asked)
        expected = statistics.mean(table.probability(name, task.skills) for task in asked)
        assert abs(got - expected) < 0.1, (name, got, expected)


def test_asking_one_worker_often_is_no_cure():
    """Most mistakes are a worker's own: a majority over many seeds is about as often right as one answer."""
    program = next(iter(programs(3).values()))
    asked = list(team_tasks(3, "train", 120, ["two_step"]))
    one = statistics.mean(verify(task.verifier, say(program, task.prompt)) for task in asked)
    majority = []
    for task in asked:
        answers = [say(program, task.prompt, seed=seed) for seed in range(9)]
        majority.append(verify(task.verifier, max(set(answers), key=answers.count)))
    assert abs(statistics.mean(majority) - one) < 0.12
    assert 0.5 < PERSISTENCE < 1


def step_prompt(task, subtask, **results):
    blocks = "".join(f"\n\n### Result of step {number[1:]}\n{text}" for number, text in results.items())
    return f"{task.prompt}\n\n### Your part\nDo your part.{blocks}\n\n### Your subtask\n{subtask}"


def test_a_worker_does_its_subtask_with_what_it_was_given_and_no_more():
    table = truth(3)
    name = max(table.success, key=lambda worker: table.success[worker]["codes"])
    program, right = programs(3)[name], []
    for number in range(100, 160):
        reply = say(
            program, step_prompt(next(team_tasks(3, "train")), "Write the result in binary.", s1=f"Answer: {number}")
        )
        right.append(verify({"kind": "exact", "value": f"{number:b}"}, reply))
    assert abs(statistics.mean(right) - table.success[name]["codes"]) < 0.12


def test_a_join_puts_the_answers_of_the_steps_together():
    (task,) = team_tasks(3, "train", 1, ["errands"])
    closing = split(task.prompt).closing
    reply = say(
        programs(3)[World(3).names[0]], step_prompt(task, closing, s1="x\nAnswer: 7", s2="**Answer:** lantern", s3="9")
    )
    assert verify({"kind": "items", "value": ["7", "lantern", "9"]}, reply) == 1


def role_prompt(request, role, latest=None):
    told = {
        "thinker": "You are the thinker of a team.\nNext role: solver or verifier",
        "verifier": "You are the verifier of a team. ACCEPT or REVISE.",
    }
    shown = f"\n\n### Latest answer\n{latest}" if latest else ""
    return f"{request}{shown}\n\n### Your role\n{told[role]}"


def test_a_thinker_does_the_first_part_and_a_solver_goes_on_from_it():
    (task,) = team_tasks(3, "train", 1, ["two_step"])
    program = programs(3)[World(3).names[0]]
    thought = say(program, role_prompt(task.prompt, "thinker"))
    assert re.match(
        r"Suggestion: Begin with the first part: it comes to \S+\. What is left: .+\nNext role: solver", thought
    )
    suggestion = thought.split("\n")[0].removeprefix("Suggestion: ")
    found = read(f"q\n\n### Suggestion\n{suggestion}\n\n### Your role\nYou are the solver of a team.").found
    assert found and found in thought


def test_a_verifier_is_right_more_often_than_a_solver():
    table = truth(3)
    judged = {True: [], False: []}
    for name, program in programs(3).items():
        for task in team_tasks(3, "train", 40, ["two_step", "checkable"]):
            answer, _ = by_text(task)
            for given, holds in ((answer, True), ("not that", False)):
                verdict = say(program, role_prompt(task.prompt, "verifier", f"Answer: {given}"))
                assert verdict.startswith(("ACCEPT", "REVISE"))
                judged[holds].append(verdict.startswith("ACCEPT") == holds)
        assert table.success[name]
    assert statistics.mean(judged[True]) > 0.7 and statistics.mean(judged[False]) > 0.7


SUM, SHARE, DAY = "Add up 3, 4 and 5, please.", "What's 20% of the result?", "Which day of the week was 2021-03-04?"
CHAIN = f"First: {SUM}\nThen: {SHARE}"
LIST = f"Two.\n(a) {SUM}\n(b) {DAY}\nBoth answers, with a semicolon between."
CARDS = (
    "Good at percentages, discounts and interest.",
    "Good at arithmetic: sums and products.",
    "Good with calendars and weekdays.",
)


@pytest.mark.parametrize(("request_text", "steps"), [
    (SUM, [("B", SUM, "none")]),
    (CHAIN, [("B", SUM, "none"), ("A", SHARE, [1])]),
    (LIST, [("B", SUM, "none"), ("C", DAY, "none"), ("A", "Both answers, with a semicolon between.", "all")]),
])  # fmt: skip
def test_the_stand_in_plans_from_the_text(request_text, steps):
    made = plan(request_text, "ABC", CARDS)
    assert [(step.letter, step.subtask, step.access) for step in made] == steps


def test_a_request_of_too_many_parts_is_one_step():
    items = "\n".join(f"- What is {n} times 4?" for n in range(8))
    assert len(plan(f"Do these.\n{items}\nAnswers separated by semicolons.", "AB", ["x", "y"])) == 1


@pytest.mark.parametrize(("request_text", "taken", "wanted"), [
    (SUM, "none", "solver"), (SUM, "solver", "verifier"), (SUM, "solver, verifier", "solver"),
    (CHAIN, "none", "thinker"), (CHAIN, "thinker", "solver"),
])  # fmt: skip
def test_the_stand_in_chooses_roles_from_the_text(request_text, taken, wanted):
    roles = ["verifier: judges", "thinker: thinks", "solver: answers"]
    scores = role_scores(request_text, f"Turn 1 of at most 5. Roles taken so far: {taken}.", roles)
    assert roles[scores.index(max(scores))].split(":")[0] == wanted


@pytest.mark.parametrize(("role", "taken", "letter"), [("thinker", "none", "B"), ("solver", "thinker", "A")])
def test_a_worker_for_a_role_is_chosen_by_the_part_that_it_would_do(role, taken, letter):
    options = [{"option": "ABC"[n], "description": card} for n, card in enumerate(CARDS)]
    context = f"The worker is wanted as {role}: x.\nTurn 1 of at most 5. Roles taken so far: {taken}."
    prompt = (
        f"[[ ## request ## ]]\n{json.dumps(CHAIN)}\n\n[[ ## context ## ]]\n{json.dumps(context)}\n\n"
        f"[[ ## workers ## ]]\n{json.dumps(options)}\n\nRespond with `[[ ## option ## ]]`."
    )
    reply = router_llm.reply([{"role": "user", "content": prompt}])
    assert reply.text.startswith(f"[[ ## option ## ]]\n{letter}\n")
