"""The exam: families, splits, gold that a solver which never saw it agrees with."""

from __future__ import annotations

import re
import time
from itertools import islice
from random import Random

import pytest

from pointsman.sandbox.cards import cards
from pointsman.sandbox.families import FAMILIES
from pointsman.sandbox.mistakes import mistaken
from pointsman.sandbox.overlap import overlaps
from pointsman.sandbox.solvers import solve
from pointsman.sandbox.tasks import tasks, wordings
from pointsman.sandbox.vocabulary import content_words
from pointsman.verifiers import verify

SEEDS = (1, 2, 3, 1003)
SPLITS = ("train", "validation", "held_out")


def exam(n=300):
    return [task for seed in SEEDS for split in SPLITS for task in tasks(seed, split, n)]


def test_there_are_nine_families_of_eight_templates_half_of_them_held_out():
    assert len(FAMILIES) >= 9
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)
    for family in FAMILIES:
        texts = [t.wording for t in (*family.templates, *family.held_out)]
        assert len(set(texts)) == len(texts) >= 8
        assert len(family.held_out) >= len(texts) / 2


def test_tasks_are_a_function_of_seed_and_split():
    first, again = list(tasks(5, "train", 50)), list(tasks(5, "train", 50))
    assert first == again
    assert list(tasks(5, "train", 20)) == first[:20]
    assert first != list(tasks(6, "train", 50))
    assert [t.prompt for t in first] != [t.prompt for t in tasks(5, "validation", 50)]
    assert len({task.id for split in SPLITS for task in tasks(5, split, 50)}) == 150


def test_without_a_number_tasks_do_not_end():
    assert len(list(islice(tasks(1, "validation"), 700))) == 700


def test_no_prompt_is_in_two_splits():
    prompts = {split: {task.prompt for task in tasks(1, split, 1500)} for split in SPLITS}
    assert not prompts["train"] & prompts["validation"]
    assert not prompts["train"] & prompts["held_out"]
    assert not prompts["validation"] & prompts["held_out"]


@pytest.mark.parametrize(("seed", "split", "held_out"), [
    (1, "train", False), (1, "validation", False), (1, "held_out", True), (1000, "train", True), (999, "train", False),
])  # fmt: skip
def test_held_out_wordings_are_only_in_held_out_splits_and_worlds(seed, split, held_out):
    for family in FAMILIES:
        assert wordings(family, seed, split) == (family.held_out if held_out else family.templates)


def test_every_template_is_asked_solved_and_verified():
    unseen = {t.wording for family in FAMILIES for t in (*family.templates, *family.held_out)}
    patterns = {w: re.compile(re.sub(r"\\\{\w+\\\}", "(?s:.*)", re.escape(w))) for w in unseen}
    for task in exam():
        solved = solve(task.prompt)
        assert solved is not None, task.prompt
        assert (solved.skill,) == task.skills, task.prompt
        assert verify(task.verifier, f"So:\nAnswer: {solved.answer}") == 1, (task.prompt, solved.answer)
        unseen -= {wording for wording in unseen if patterns[wording].fullmatch(task.prompt)}
    assert not unseen


def test_a_mistake_is_always_wrong_and_repeats():
    for task in exam():
        solved = solve(task.prompt)
        wrong = mistaken(solved, Random(task.id))
        assert verify(task.verifier, f"Answer: {wrong}") == 0, (task.prompt, solved.answer, wrong)
        assert wrong == mistaken(solved, Random(task.id))


@pytest.mark.parametrize("kind", ["world", "truthful"])
@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5, 1001, 1002])
def test_at_least_15_percent_of_prompts_share_no_content_word_with_any_card(seed, kind):
    said = frozenset().union(*map(content_words, cards(seed, kind).values()))
    for split in SPLITS:
        asked = [content_words(task.prompt) for task in tasks(seed, split, 300)]
        assert sum(not words & said for words in asked) / len(asked) >= 0.15


def test_a_prompt_alone_gives_no_gold_away_in_its_id_or_skills():
    task = next(tasks(1, "train"))
    assert task.id == "1-train-0"
    assert task.skills == (task.family,)


@pytest.mark.parametrize("text", ["9", "a", "9, ", "a, ", "a b ", "|a|\n", "a,1\n", ".- ", "Ab ", "9;", "- ", "9-"])
def test_long_texts_are_read_quickly(text):
    prompt = text * (20_000 // len(text))
    started = time.perf_counter()
    assert solve(prompt) is None
    assert overlaps(prompt, ["x", "y"]) == [0, 0]
    assert time.perf_counter() - started < 10  # a search that tries every start would take far longer


@pytest.mark.parametrize(
    "prompt", ["hello", "", "What is the meaning of life?", "| a |\n|---|\n\nWho has the most goals?"]
)
def test_what_no_solver_knows_is_not_solved(prompt):
    assert solve(prompt) is None
