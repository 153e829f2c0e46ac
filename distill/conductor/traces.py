"""Examples from logged episodes that ended well.

A `workflow` has its conductor's prompt on record, and the plan as it was carried out: shown again in a new order of
letters, with a random part of the workers that it did not need left out. A `trinity` had no plan: its turns become one
(a turn is a step that sees all before it), for the prompt that a conductor would have been sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from distill.conductor.example import Example, asked, weight_of, written
from distill.conductor.pointing import WHOLE, pointing
from harness.engine.learned import Form
from harness.engine.plan.grammar import MAX_STEPS, Plan, Step, plan_of
from harness.routing.base import Ask
from pointsman.errors import UserError
from pointsman.hashing import text_hash
from pointsman.pool import Worker

SUBTASKS: Mapping[str, str] = {
    "thinker": "Say how to go about the request, and what to begin with. Do not do it.",
    "solver": WHOLE,
    "verifier": "Say whether the answer so far is right, and what is wrong with it.",
}


@dataclass(frozen=True)
class Trace:
    """One logged run. `plan` as carried out, or `turns`: (worker, role) of a trinity. `reward` in [0, 1], cost in USD.

    `cards`: worker → card of all that could have been chosen.
    """

    text: str
    context: str
    cards: Mapping[str, str]
    reward: float
    cost: float
    plan: Mapping[str, Any] | None = None
    turns: tuple[tuple[str, str], ...] = ()

    @property
    def group(self) -> str:
        return text_hash(self.text)


@dataclass(frozen=True)
class TraceConfig:
    """`least_reward` is what ended well; `shows` how often each is shown, in a new order and pool."""

    least_reward: float = 0.5
    shows: int = 1
    form: Form = "short"
    max_steps: int = MAX_STEPS
    point: bool = True
    seed: int = 1


def examples_of(traces: Sequence[Trace], config: TraceConfig) -> tuple[list[Example], dict[str, int]]:
    """Examples, and how many traces were left out for which reason."""
    left_out: dict[str, int] = {}
    good = [trace for trace in traces if trace.reward >= config.least_reward]
    if len(good) < len(traces):
        left_out["ended badly"] = len(traces) - len(good)
    cheapest: dict[str, float] = {}
    for trace in good:
        cheapest[trace.group] = min(trace.cost, cheapest.get(trace.group, trace.cost))
    made: list[Example] = []
    for number, trace in enumerate(good):
        rng = Random(f"traces/{config.seed}/{number}")
        plan = plan_of(trace.plan) if trace.plan is not None else plan_of_turns(trace.turns, config.max_steps)
        found = _shown(trace, plan, cheapest[trace.group], rng, config)
        if not found:
            left_out["not a plan that serving reads"] = left_out.get("not a plan that serving reads", 0) + 1
        made += found
    return made, left_out


def plan_of_turns(turns: Sequence[tuple[str, str]], max_steps: int = MAX_STEPS) -> Plan:
    """(worker, role) in order, up to the last solver: what came behind it only accepted it."""
    last = max((place for place, (_, role) in enumerate(turns) if role == "solver"), default=-1)
    kept = list(turns[: last + 1])[-max_steps:]
    return Plan(
        tuple(
            Step(worker, SUBTASKS.get(role, WHOLE), "all" if number else ())
            for number, (worker, role) in enumerate(kept)
        )
    )


def _shown(trace: Trace, plan: Plan, cheapest: float, rng: Random, config: TraceConfig) -> list[Example]:
    """Serving must read the same plan, so what it would refuse (a worker that is gone, no steps) is left out."""
    needed = {step.worker for step in plan.steps}
    if not plan.steps or not needed <= set(trace.cards) or any(step.gate is not None for step in plan.steps):
        return []
    told = pointing(plan, trace.text) if config.point else plan
    weight = weight_of(trace.reward, trace.cost, cheapest)
    made = []
    for _ in range(config.shows):
        spare = sorted(set(trace.cards) - needed)
        others = rng.sample(spare, rng.randint(min(1, len(spare)), len(spare)))
        workers = tuple(_worker(name, trace.cards[name]) for name in sorted([*others, *(n for n in needed if n)]))
        prompt = asked(Ask(trace.text, trace.context), workers, rng.getrandbits(48), config.form, config.max_steps)
        try:
            text = written(told, prompt.options, config.max_steps)
        except UserError:
            return []
        made.append(Example(prompt.messages, text, trace.group, trace.reward, trace.cost, weight / config.shows, "log"))
    return made


def _worker(name: str, card: str) -> Worker:
    """A worker as a prompt needs one: its name and card."""
    return replace(_NOBODY, name=name, card=card)


_NOBODY = Worker("nobody", "", "", ())
