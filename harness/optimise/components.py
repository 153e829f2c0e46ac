"""The search over texts: `gepa.optimize` (Agrawal et al., arXiv 2507.19457) with our adapter.

Each card and the instructions are components of their own. In each step GEPA takes a candidate from the Pareto front of
the validation rows, runs it on a few training rows, and has one component rewritten from its lessons; a child that does
better on those rows is run on the validation rows. gepa is imported here and nowhere else, when a search begins.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from harness.optimise.budget import BudgetSpent, Spending
from harness.optimise.candidate import Candidate
from harness.optimise.evaluate import Evaluator, Routed
from harness.optimise.guard import Guard
from harness.optimise.lessons import Batch, lessons
from harness.optimise.proposer import Lesson, Proposer
from harness.optimise.rows import Objective, Rows
from harness.optimise.teacher import Teacher

MINIBATCH = 12
MAX_STEPS = 200

Texts = dict[str, str]


@dataclass(frozen=True)
class Problem:
    """What candidates are judged by: training and validation rows, the objective, the teacher of the training rows."""

    train: Rows
    validation: Rows
    objective: Objective
    teacher: Teacher
    guard: Guard


@dataclass(frozen=True)
class Item:
    """One row as gepa carries it: its part and position."""

    part: str
    index: int


class CardAdapter:
    """gepa's `GEPAAdapter` over our evaluator. `made` has every candidate that was evaluated, in order."""

    propose_new_texts = None

    def __init__(self, problem: Problem, evaluator: Evaluator, proposer: Proposer, start: Candidate) -> None:
        self._problem = problem
        self._evaluator = evaluator
        self._proposer = proposer
        self._start = start
        self._known: dict[tuple[tuple[str, str], ...], Candidate] = {_key(start.components): start}
        self._lessons: dict[str, list[Lesson]] = {}
        self.validated: list[Candidate] = []
        self.failure: BaseException | None = None

    def evaluate(self, batch: Sequence[Item], candidate: Texts, capture_traces: bool = False) -> Any:
        """Utilities by row; the trajectories are the routed rows."""
        from gepa.core.adapter import EvaluationBatch

        rows = self.rows_of(batch)
        made = self.candidate_of(candidate)
        routed = self._evaluator.routed(made, rows)
        if batch and batch[0].part == "validation" and made not in self.validated:
            self.validated.append(made)
        scores = [float(value) for value in routed.utilities(rows, self._problem.objective)]
        traces = [(item, routed, place) for place, item in enumerate(batch)] if capture_traces else None
        return EvaluationBatch(outputs=[None] * len(batch), scores=scores, trajectories=traces)

    def make_reflective_dataset(
        self, candidate: Texts, eval_batch: Any, components_to_update: list[str]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Per component, what it is responsible for; the lessons themselves are kept for `propose`."""
        items = [item for item, _, _ in eval_batch.trajectories]
        routed: Routed = eval_batch.trajectories[0][1]
        values = self._problem.teacher.values[[item.index for item in items]]
        batch = Batch(self.rows_of(items), routed, values)
        self._lessons = {name: lessons(batch, name, self._problem.guard) for name in components_to_update}
        return {
            name: [{"Inputs": lesson.request, "Feedback": lesson.feedback} for lesson in found]
            for name, found in self._lessons.items()
        }

    def propose(
        self, candidate: Texts, reflective_dataset: Mapping[str, Any], components_to_update: list[str]
    ) -> Texts:
        """gepa's custom proposer: a new text per component, none where there is nothing to learn or to offer."""
        try:
            return self._propose(candidate, components_to_update)
        except BaseException as error:
            self.failure = error  # gepa logs what a proposer raises, and goes on
            raise

    def _propose(self, candidate: Texts, components_to_update: list[str]) -> Texts:
        parent = self.candidate_of(candidate)
        texts: Texts = {}
        for name in components_to_update:
            text = self._proposer.propose(parent, name, self._lessons.get(name, []))
            if text is not None:
                texts[name] = text
        if texts:
            child = parent.with_components(texts, f"rewritten: {', '.join(texts)}")
            self._known.setdefault(_key(child.components), child)
        return texts

    def candidate_of(self, texts: Texts) -> Candidate:
        """The candidate of gepa's texts."""
        return self._known[_key(texts)]

    def rows_of(self, items: Sequence[Item]) -> Rows:
        """The rows of gepa's items, all of one part."""
        part = self._problem.validation if items and items[0].part == "validation" else self._problem.train
        return part.take([item.index for item in items])


class _Worst:
    """The component whose lessons lost most: gepa asks for it after the batch was run."""

    def __init__(self, adapter: CardAdapter, proposer: Proposer, problem: Problem, seed: int) -> None:
        self._adapter, self._proposer, self._problem = adapter, proposer, problem
        self._rng = random.Random(seed)

    def __call__(self, state: Any, trajectories: Any, scores: Any, index: int, candidate: Texts) -> list[str]:
        made = self._adapter.candidate_of(candidate)
        names = self._proposer.components(made)
        items = [item for item, _, _ in trajectories]
        values = self._problem.teacher.values[[item.index for item in items]]
        batch = Batch(self._adapter.rows_of(items), trajectories[0][1], values)
        lost = {name: sum(lesson.lost for lesson in lessons(batch, name, self._problem.guard)) for name in names}
        # Now and then another one, so that no component is stuck with while it cannot be bettered.
        weights = [lost[name] + 0.01 for name in names]
        return self._rng.choices(names, weights)


class _Quiet:
    """gepa's logger: what a search did is in its report."""

    def log(self, message: str) -> None:
        pass


def search_components(
    problem: Problem,
    evaluator: Evaluator,
    proposer: Proposer,
    start: Candidate,
    spending: Spending,
    *,
    calls: int | None,
    validation: Sequence[int],
    seed: int,
    minibatch: int = MINIBATCH,
    max_steps: int = MAX_STEPS,
    on_step: Callable[[], None] = lambda: None,
) -> list[Candidate]:
    """Candidates that did well enough to be validated, the start first. `calls` bounds this stage; None: the budget."""
    from gepa.api import optimize

    adapter = CardAdapter(problem, evaluator, proposer, start)
    limit = None if calls is None else spending.calls + calls
    steps = 0

    def stop(gepa_state: Any) -> bool:
        nonlocal steps
        steps += 1
        on_step()
        over = limit is not None and spending.calls + 2 * minibatch > limit
        return over or steps > max_steps or spending.spent() is not None or adapter.failure is not None

    # gepa's protocols name their arguments otherwise; they are given by position.
    for_gepa: Any = adapter
    selector: Any = _Worst(adapter, proposer, problem, seed)
    with suppress(BudgetSpent):
        optimize(
            seed_candidate=start.components,
            trainset=[Item("train", index) for index in range(len(problem.train))],
            valset=[Item("validation", index) for index in validation],
            adapter=for_gepa,
            custom_candidate_proposer=adapter.propose,
            module_selector=selector,
            reflection_minibatch_size=min(minibatch, len(problem.train)),
            skip_perfect_score=False,
            stop_callbacks=stop,
            logger=_Quiet(),
            seed=seed,
            raise_on_exception=True,
        )
    if adapter.failure is not None and not isinstance(adapter.failure, BudgetSpent):
        raise adapter.failure
    return adapter.validated


def _key(texts: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(texts.items()))
