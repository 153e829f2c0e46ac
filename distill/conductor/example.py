"""One training example: exactly the prompt that serving would send, a plan in the one grammar, and what it earned."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.engine.conductor import plan_prompt
from harness.engine.learned import Form, shaped
from harness.engine.plan.grammar import MAX_STEPS, Plan
from harness.engine.plan.parse import parse
from harness.engine.plan.render import render
from harness.engine.request import Message, seed_of
from harness.routing.base import Ask
from pointsman.errors import UserError
from pointsman.pool import Worker

PLAN_KEY = "plan:0:0"
"""The key of a workflow's first plan: the order of its options is drawn from the run's seed and this."""


@dataclass(frozen=True)
class Asked:
    """A conductor's prompt. `options`: letter → worker."""

    messages: list[Message]
    options: Mapping[str, str]


@dataclass(frozen=True)
class Example:
    """`group` is the request's: examples of one group stay on one side of a split. `origin`: where it came from."""

    prompt: list[Message]
    completion: str
    group: str
    reward: float
    cost: float
    weight: float = 1.0
    origin: str = "rollout"


def asked(ask: Ask, workers: tuple[Worker, ...], seed: int, form: Form, max_steps: int = MAX_STEPS) -> Asked:
    """The prompt of a run of this seed over these workers: the same function of both that the engine uses."""
    prompt = plan_prompt(ask, max_steps=max_steps)(workers, seed_of(seed, PLAN_KEY))
    return Asked(shaped(prompt.messages, form), prompt.options)


def written(plan: Plan, options: Mapping[str, str], max_steps: int = MAX_STEPS) -> str:
    """The plan as the conductor is to write it. Raises `UserError` where serving would not read the same plan."""
    text = render(plan, {name: letter for letter, name in options.items()})
    found = parse(text, options, max_steps=max_steps)
    if found.plan != plan or found.status != "ok":
        raise UserError(f"a plan is not read as it was written: {'; '.join(found.problems) or text[:200]}")
    return text


def weight_of(reward: float, cost: float, cheapest: float) -> float:
    """How often an example is shown: by its reward, and down to half of that where the same answer was had for less."""
    saved = 1.0 if cost <= 0 else 0.5 + 0.5 * min(1.0, cheapest / cost)
    return max(0.0, reward) * saved


def repeated(examples: Sequence[Example], seed: int) -> list[Example]:
    """Each example as often as its weight says, fractions drawn: for a trainer without weights."""
    import random

    rng = random.Random(f"weights/{seed}")
    shown = [one for one in examples for _ in range(int(one.weight) + (rng.random() < one.weight % 1))]
    rng.shuffle(shown)
    return shown


def to_table(examples: Iterable[Example]) -> Any:
    """A pyarrow table: `prompt` as JSON text, so that no reader has to know a nested type."""
    import pyarrow as pa

    rows = [one.__dict__ | {"prompt": json.dumps(one.prompt, ensure_ascii=False)} for one in examples]
    columns = ("prompt", "completion", "group", "reward", "cost", "weight", "origin")
    return pa.table({name: [row[name] for row in rows] for name in columns})


def from_table(table: Any) -> list[Example]:
    """The inverse of `to_table`."""
    try:
        return [Example(**row | {"prompt": json.loads(row["prompt"])}) for row in table.to_pylist()]
    except (TypeError, KeyError, ValueError) as error:
        raise UserError(f"conductor data: not a table of examples: {error}") from error
