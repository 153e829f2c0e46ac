"""Lessons of a batch of training rows for one component: only rows that it is responsible for.

A card is responsible for the rows that its worker should have had and for those that it was given; the instructions for
every row. What proposers see of a row is bounded, secrets left out; comments of one key are at most a tenth of a batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.optimise.candidate import worker_of
from harness.optimise.evaluate import Routed
from harness.optimise.guard import Guard
from harness.optimise.proposer import Lesson
from harness.optimise.rows import Comment, Floats, Rows

REQUEST_CHARS = 400
COMMENT_CHARS = 200
KEY_SHARE = 0.1
NEAR = 0.02  # utilities this near count as equal


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows, how a candidate routed them, and their smoothed utilities (rows, workers)."""

    rows: Rows
    routed: Routed
    values: Floats


def lessons(batch: Batch, component: str, guard: Guard) -> list[Lesson]:
    """What `component` can learn from `batch`, worst first."""
    worker = worker_of(component)
    made = [_lesson(batch, index, worker, guard) for index in range(len(batch.rows))]
    found = sorted((lesson for lesson in made if lesson is not None), key=lambda lesson: -lesson.lost)
    return _capped(found, batch, guard)


def _lesson(batch: Batch, index: int, worker: str | None, guard: Guard) -> Lesson | None:
    names = batch.rows.workers
    values, policy = batch.values[index], batch.routed.policy[index]
    chosen, gold = int(policy.argmax()), int(values.argmax())
    own = chosen if worker is None else names.index(worker)
    if own not in (chosen, gold):
        return None
    row = batch.rows.rows[index]
    return Lesson(
        row=row.id,
        request=guard.masked(row.ask.text)[:REQUEST_CHARS],
        chosen=own == chosen,
        gold=own == gold,
        own=float(values[own]),
        best=float(values[gold]),
        feedback=_feedback(batch, index, own, chosen, gold),
    )


def _feedback(batch: Batch, index: int, own: int, chosen: int, gold: int) -> str:
    names, values = batch.rows.workers, batch.values[index]
    got = batch.rows.rewards[index]
    if batch.routed.failed[index]:
        return f"The router's reply could not be used ({batch.routed.failed[index]})."
    if own == chosen and values[gold] - values[own] <= NEAR:
        return f"Chosen, and rightly: it earned {got[own]:.2f}."
    if own == chosen:
        return (
            f"Chosen, though on requests like this it earns {values[own]:.2f} and {names[gold]} {values[gold]:.2f}: "
            f"it lost to {names[gold]} by {values[gold] - values[own]:.2f}."
        )
    return (
        f"Not chosen, though it earns {values[own]:.2f} on requests like this: "
        f"{names[chosen]} was chosen instead, which earns {values[chosen]:.2f}."
    )


def _capped(found: Sequence[Lesson], batch: Batch, guard: Guard) -> list[Lesson]:
    """The lessons with their rows' comments, of one key no more than `KEY_SHARE` of the batch."""
    limit = int(KEY_SHARE * len(found))
    by_id = {row.id: row for row in batch.rows.rows}
    used: Counter[str | None] = Counter()
    made = []
    for lesson in found:
        kept = []
        for comment in by_id[lesson.row].comments:
            if used[comment.key] < limit:
                used[comment.key] += 1
                kept.append(_comment(comment, guard))
        made.append(replace(lesson, comments=tuple(kept)))
    return made


def _comment(comment: Comment, guard: Guard) -> str:
    return guard.masked(comment.text)[:COMMENT_CHARS]
