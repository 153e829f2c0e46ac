"""`optimise`: from rows and a start to a report. The one place that knows the order of a search.

split by time → teacher and guard from the training rows → search → certification, once, where something looked better.
Rows, router LLM, proposer and budget are arguments; nothing here reads the log or writes to it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from harness.optimise.budget import Budget, Clock, OnCost, Spending
from harness.optimise.build import RouterLlm, router_of
from harness.optimise.calls import CountedLm
from harness.optimise.candidate import Candidate
from harness.optimise.certify import certify
from harness.optimise.components import Problem
from harness.optimise.discrete import BRIEF
from harness.optimise.evaluate import CONCURRENCY, Evaluator
from harness.optimise.guard import Guard
from harness.optimise.memory import Memory
from harness.optimise.proposer import Proposer
from harness.optimise.reflection import ReflectingProposer
from harness.optimise.report import Report
from harness.optimise.rows import Objective, Rows, Splits, objective_of
from harness.optimise.search import Found, OnStage, Plan, Search
from harness.optimise.teacher import Teacher
from harness.optimise.writer import CardWriter
from harness.routing.prompted import Lm, PromptedRouter
from pointsman.hashing import content_hash
from pointsman.pool import Price, Worker

OpenSet = Callable[[Candidate, Rows], float | None]


@dataclass(frozen=True)
class Reflection:
    """A language model that rewrites texts: a function that reaches it, its model id, its price."""

    lm: Lm
    model: str
    price: Price | None = None


@dataclass(frozen=True)
class Setting:
    """How a search is run. `alpha` is what the release may spend on its certification set; `folder` has a
    folder for each search's state.

    Without `reflection` the cards are written from the rows by `CardWriter`, and no language model but the router's is
    asked anything. `default` is the worker that answers where the router fails.
    """

    llm: RouterLlm
    default: str
    budget: Budget = field(default_factory=Budget)
    plan: Plan = field(default_factory=Plan)
    trade_off: float = 0.0
    alpha: float = 0.0125
    concurrency: int = CONCURRENCY
    brief_instructions: bool = False
    mipro: bool = False
    reflection: Reflection | None = None
    folder: Path | None = None
    clock: Clock = field(default=time.monotonic)
    on_cost: OnCost = field(default=lambda amount: None)


def optimise(
    splits: Splits,
    start: Candidate,
    workers: Sequence[Worker],
    lm: Lm,
    setting: Setting,
    runner: asyncio.Runner,
    on_stage: OnStage = lambda stage: None,
    open_set: OpenSet | None = None,
) -> Report:
    """Searches from `start` and certifies what it finds. `lm` and `runner` belong together (one event loop).

    `open_set` is asked before the certification rows are looked at: it gives the error that may be spent on them, or
    None where they shall stay closed. Without it `setting.alpha` is spent.
    """
    objective = objective_of([splits.train, splits.validation], setting.trade_off)
    teacher = Teacher(splits.train, objective)
    guard = Guard.of([splits.train, splits.validation], splits.train.workers)
    problem = Problem(splits.train, splits.validation, objective, teacher, guard)
    named = _named(splits, start, setting)
    memory = Memory(None if setting.folder is None else setting.folder / named[:16], named)
    spending = Spending(setting.budget, setting.clock, seconds_before=_seconds(memory), on_cost=setting.on_cost)
    counted = CountedLm(lm, spending, memory, setting.llm.price)
    writer = CardWriter(teacher, guard)
    proposer = _proposer(setting.reflection, writer, spending, memory, guard, runner)
    plan = setting.plan if not setting.brief_instructions else _with_brief(setting.plan, start)
    place = _evaluators(workers, setting, runner)
    evaluator = place(counted)
    if setting.mipro and isinstance(proposer, ReflectingProposer):
        on_stage("instructions")
        plan = _with_mipro(plan, problem, start, workers, counted, proposer, setting, runner)
    drafts = writer.drafts()
    found = Search(problem, evaluator, spending, memory, plan, proposer, drafts, on_stage).run(start)
    apart = Spending(Budget(calls=None), setting.clock, on_cost=setting.on_cost)
    certificate = None
    alpha = _alpha(found, splits.certification, setting, open_set)
    if alpha is not None:
        on_stage("certification")
        last = place(CountedLm(lm, apart, memory, setting.llm.price))
        rows, finalists = splits.certification, found.finalists
        single = _best_single(splits, objective)
        certificate = certify(found.winner, start, finalists, single, rows, last, objective, alpha)
    return Report(found, splits, spending, certificate, apart, evaluator.failures)


def _best_single(splits: Splits, objective: Objective) -> int:
    """The worker that is best on the rows that the search sees."""
    parts = [part.utilities(objective) for part in (splits.train, splits.validation)]
    return int(np.concatenate(parts).mean(axis=0).argmax())


def _alpha(found: Found, rows: Rows, setting: Setting, open_set: OpenSet | None) -> float | None:
    if not found.better:
        return None
    return setting.alpha if open_set is None else open_set(found.winner, rows)


def _proposer(
    reflection: Reflection | None,
    writer: CardWriter,
    spending: Spending,
    memory: Memory,
    guard: Guard,
    runner: asyncio.Runner,
) -> Proposer:
    if reflection is None:
        return writer
    # Reflection calls are paid from the same purse; they are few, and counted as calls too.
    asked = CountedLm(reflection.lm, spending, memory, reflection.price)
    return ReflectingProposer(asked, reflection.model, guard, runner)


def _evaluators(
    workers: Sequence[Worker], setting: Setting, runner: asyncio.Runner
) -> Callable[[CountedLm], Evaluator]:
    def make(lm: CountedLm) -> Evaluator:
        def build(candidate: Candidate) -> PromptedRouter:
            return router_of(candidate, setting.llm, lm)

        return Evaluator(workers, build, setting.default, runner, setting.concurrency)

    return make


def _with_brief(plan: Plan, start: Candidate) -> Plan:
    child = start.with_components({"instructions": BRIEF}, "hand-written: brief instructions")
    return replace(plan, others=(*plan.others, child))


def _with_mipro(
    plan: Plan,
    problem: Problem,
    start: Candidate,
    workers: Sequence[Worker],
    counted: CountedLm,
    proposer: ReflectingProposer,
    setting: Setting,
    runner: asyncio.Runner,
) -> Plan:
    from harness.optimise.mipro import Models, mipro_instructions

    models = Models(counted, setting.llm.model, proposer.lm, proposer.model)
    made = mipro_instructions(
        start, problem.train, workers, problem.objective, models, problem.guard, runner, plan.seed
    )
    return plan if made is None else replace(plan, others=(*plan.others, made))


def _named(splits: Splits, start: Candidate, setting: Setting) -> str:
    """Of everything that a search's steps depend on, but the replies."""
    parts = [splits.train.hash, splits.validation.hash, start.config, setting.llm.model, setting.trade_off]
    asked = [setting.plan.seed, setting.plan.demonstrations, setting.plan.finalists, setting.default]
    reflecting = [setting.reflection.model if setting.reflection else None, setting.mipro, setting.brief_instructions]
    return content_hash([*parts, *asked, *reflecting, [other.config for other in setting.plan.others]])


def _seconds(memory: Memory) -> float:
    spent = memory.state.get("spent")
    return float(spent["seconds"]) if isinstance(spent, dict) else 0.0
