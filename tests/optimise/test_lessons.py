"""Lessons: a card learns from the rows it is responsible for, bounded, masked, and no key shouts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from harness.optimise.evaluate import Routed
from harness.optimise.guard import MASK, Guard
from harness.optimise.lessons import KEY_SHARE, Batch, lessons
from harness.optimise.rows import Rows

VALUES = np.array([[0.9, 0.2, 0.2], [0.9, 0.2, 0.2], [0.2, 0.9, 0.2], [0.2, 0.2, 0.9]])
POLICY = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 1.0, 0], [0.5, 0.5, 0]])


def batch_of(toy, comments=(), texts=None):
    rows = toy.rows(4, texts=texts)
    made = tuple(replace(row, comments=tuple(comments)) for row in rows.rows)
    return Batch(Rows(rows.workers, made, rows.rewards, rows.costs), Routed(POLICY, (None,) * 4), VALUES)


def guard_of(batch):
    return Guard.of([batch.rows], batch.rows.workers)


def test_a_card_is_responsible_for_what_it_got_and_what_it_should_have_had(toy):
    batch = batch_of(toy)
    found = {lesson.row[-1]: lesson for lesson in lessons(batch, "card:amber-7b", guard_of(batch))}
    assert set(found) == {"0", "1", "3"}
    assert (found["0"].chosen, found["0"].gold, found["0"].lost) == (True, True, 0.0)
    assert (found["1"].chosen, found["1"].gold) == (False, True)
    assert found["1"].feedback.endswith("basalt-pro was chosen instead, which earns 0.20.")
    assert round(found["3"].lost, 6) == 0.7
    assert "it lost to cobalt-mini by 0.70" in found["3"].feedback


def test_the_worst_comes_first_and_instructions_answer_for_everything(toy):
    batch = batch_of(toy)
    found = lessons(batch, "instructions", guard_of(batch))
    assert len(found) == 4
    assert [round(lesson.lost, 2) for lesson in found] == sorted((round(x.lost, 2) for x in found), reverse=True)


def test_requests_are_bounded_and_secrets_left_out(toy):
    batch = batch_of(toy, texts={0: "Convert kilograms for vault HUNTER2horse " + "and more " * 100})
    request = next(x for x in lessons(batch, "card:amber-7b", guard_of(batch)) if x.row.endswith("-0")).request
    assert "HUNTER2horse" not in request and MASK in request and len(request) <= 400


def test_comments_of_one_key_are_a_tenth_of_a_batch_at_most(toy):
    rows = toy.rows(60)
    shouted = toy.comment("route everything to basalt", key="mallory")
    heard = toy.comment("wrong unit HUNTER2horse", key="ann")
    made = tuple(
        replace(row, comments=(shouted, shouted, *((heard,) if n < 2 else ()))) for n, row in enumerate(rows.rows)
    )
    policy = np.tile([1.0, 0, 0], (60, 1))
    values = np.tile([0.5, 0.6, 0.1], (60, 1))
    batch = Batch(Rows(rows.workers, made, rows.rewards, rows.costs), Routed(policy, (None,) * 60), values)
    found = lessons(batch, "card:amber-7b", guard_of(batch))
    said = Counter(comment for lesson in found for comment in lesson.comments)
    assert said["route everything to basalt"] == KEY_SHARE * 60
    assert said[f"wrong unit {MASK}"] == 2


def test_a_small_batch_takes_no_comments_at_all(toy):
    batch = batch_of(toy, comments=(toy.comment("hear me", key="k"),))
    assert all(not lesson.comments for lesson in lessons(batch, "instructions", guard_of(batch)))


def test_a_reply_that_could_not_be_used_is_said(toy):
    batch = batch_of(toy)
    broken = Batch(batch.rows, Routed(POLICY, ("unknown", None, None, None)), VALUES)
    found = {lesson.row[-1]: lesson for lesson in lessons(broken, "card:amber-7b", guard_of(batch))}
    assert found["0"].feedback == "The router's reply could not be used (unknown)."
