"""The search: drafts, rewriting, the parts that are no text, finals. What it may spend is given, what it spent is told.

    drafts    whole sets of cards from the training rows, halved against the start on validation rows
    texts     the best set's components rewritten one by one (`components`, gepa)
    parts     scoring mode, demonstrations, other instructions at hand
    finals    the best of each against the start again; the winner, and whether it looks better than the start at all

It never sees the certification rows. Its scores choose and nothing more: a claim is made by `certify`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.optimise.budget import BudgetSpent, Spending
from harness.optimise.candidate import Candidate
from harness.optimise.components import Problem, search_components
from harness.optimise.discrete import demonstrations, variants
from harness.optimise.evaluate import Evaluator
from harness.optimise.finals import Contest, Standing
from harness.optimise.memory import Memory
from harness.optimise.proposer import Draft, Proposer

SHARES = {"drafts": 0.45, "texts": 0.25, "finals": 0.3}
TEXT_ROWS = 40
FINALISTS = 6
KNOWN_ROWS = 20  # a search that was cut off needs this many common rows to prefer anything to the start
UNLIMITED = 4_000  # evaluations shared out where no budget of calls is set

OnStage = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """How to search. `others` are candidates from elsewhere (hand-written, MIPROv2) that join the finals."""

    seed: int = 1
    demonstrations: int = 0
    finalists: int = FINALISTS
    others: tuple[Candidate, ...] = ()


@dataclass
class Found:
    """What a search came to. `winner` is the start where nothing looked better.

    `stopped` names the limit that cut it short.
    """

    start: Candidate
    winner: Candidate
    finalists: list[Candidate]
    standings: list[Standing] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    stopped: str | None = None

    @property
    def better(self) -> bool:
        return self.winner.id != self.start.id


class Search:
    """One search. `drafts` are whole card sets, `proposer` rewrites single texts."""

    def __init__(
        self,
        problem: Problem,
        evaluator: Evaluator,
        spending: Spending,
        memory: Memory,
        plan: Plan,
        proposer: Proposer,
        drafts: Sequence[Draft],
        on_stage: OnStage = lambda stage: None,
    ) -> None:
        self._problem, self._evaluator, self._spending, self._memory = problem, evaluator, spending, memory
        self._plan, self._proposer, self._drafts, self._on_stage = plan, proposer, drafts, on_stage
        self._contest = Contest(evaluator, problem.validation, problem.objective)
        self._all: dict[str, Candidate] = {}
        self._calls = spending.budget.calls or UNLIMITED

    def run(self, start: Candidate) -> Found:
        """The whole of it; a limit that is reached ends a stage, and what is known by then decides."""
        found = Found(start, start, [start])
        try:
            best = self._draft(start)
            texts = self._rewrite(best)
            finals = self._unique([start, best, *texts, *self._parts(texts[-1]), *self._plan.others])
            self._decide(found, finals[: self._plan.finalists])
        except BudgetSpent as limit:
            found.stopped = str(limit)
            found.winner = self._contest.best_known(start, list(self._all.values()), KNOWN_ROWS)
            found.finalists = self._unique([found.winner, start])
        found.candidates = list(self._all.values())
        self._save("done")
        return found

    def _draft(self, start: Candidate) -> Candidate:
        """The best of the start and the drafts."""
        self._stage("drafts")
        made = [
            start.with_components({f"card:{name}": text for name, text in draft.cards.items()}, draft.how)
            for draft in self._drafts
        ]
        candidates = self._unique([start, *made])
        standings = self._contest.halve(candidates, self._share("drafts"), self._plan.seed)
        return self._contest.first_alike(standings[0].candidate, candidates)

    def _rewrite(self, best: Candidate) -> list[Candidate]:
        """Candidates of the component search that were validated, the best last."""
        self._stage("texts")
        rows = self._order()[:TEXT_ROWS]
        made = search_components(
            self._problem,
            self._evaluator,
            self._proposer,
            best,
            self._spending,
            calls=self._share("texts"),
            validation=rows,
            seed=self._plan.seed,
            on_step=lambda: self._save("texts"),
        )
        ranked = sorted(self._unique(made) or [best], key=lambda one: float(self._contest.utilities(one, rows).mean()))
        return ranked[-2:]

    def _parts(self, best: Candidate) -> list[Candidate]:
        self._stage("parts")
        examples = demonstrations(
            self._problem.teacher, self._problem.guard, self._plan.demonstrations, self._plan.seed
        )
        return self._unique(variants(best, examples))

    def _decide(self, found: Found, finals: list[Candidate]) -> None:
        self._stage("finals")
        left = self._spending.calls_left
        evaluations = self._share("finals") if left is None else left
        found.finalists = finals
        found.standings = self._contest.halve(finals, evaluations, self._plan.seed + 1)
        found.winner = self._contest.first_alike(found.standings[0].candidate, finals)

    def _order(self) -> list[int]:
        """The validation rows in the order in which the finals take them."""
        order = np.random.default_rng(self._plan.seed + 1).permutation(len(self._problem.validation))
        return [int(index) for index in order]

    def _share(self, stage: str) -> int:
        return int(SHARES[stage] * self._calls)

    def _unique(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        made = list({one.id: one for one in reversed(candidates)}.values())[::-1]
        for one in made:
            self._all.setdefault(one.id, one)
        return made

    def _stage(self, stage: str) -> None:
        self._on_stage(stage)
        self._save(stage)

    def _save(self, stage: str) -> None:
        lineage: list[dict[str, Any]] = [
            {"id": one.id, "parent": one.parent, "origin": one.origin, **one.config} for one in self._all.values()
        ]
        self._memory.save({"stage": stage, "spent": self._spending.as_dict(), "candidates": lineage})
