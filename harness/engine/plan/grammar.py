"""What a plan is, as a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Access = tuple[int, ...] | Literal["all"]
"""Which earlier steps' outputs a step sees: positions counted from 1, none of them `()`, or `all`."""

MAX_STEPS = 5
"""Conductor's `max_routing_steps` (authors' code); a setting."""


@dataclass(frozen=True)
class Step:
    """`worker` None: the router chooses one for the subtask. `gate`: an expression that its output must match."""

    worker: str | None
    subtask: str
    access: Access = ()
    gate: str | None = None


@dataclass(frozen=True)
class Plan:
    """Steps, counted from 1. An empty plan says that the answer before it stands."""

    steps: tuple[Step, ...]

    def reads(self, number: int) -> tuple[int, ...]:
        """The steps whose outputs step `number` sees."""
        access = self.steps[number - 1].access
        return tuple(range(1, number)) if access == "all" else tuple(sorted(set(access)))

    def as_json(self) -> dict[str, Any]:
        """As it stands in the log."""
        return {
            "steps": [
                {
                    "worker": step.worker,
                    "subtask": step.subtask,
                    "access": step.access if step.access == "all" else list(step.access),
                    **({"gate": step.gate} if step.gate is not None else {}),
                }
                for step in self.steps
            ]
        }


def plan_of(value: Any) -> Plan:
    """The plan that `as_json` wrote."""
    return Plan(
        tuple(
            Step(
                step["worker"],
                step["subtask"],
                "all" if step["access"] == "all" else tuple(step["access"]),
                step.get("gate"),
            )
            for step in value["steps"]
        )
    )


def problems_of(plan: Plan, workers: Sequence[str], *, max_steps: int = MAX_STEPS, empty: bool = False) -> list[str]:
    """What is wrong with a plan, a line each that says what was expected; none: it may run.

    Every step but the last must be seen by a later one. `empty` allows a plan without steps.
    """
    count = len(plan.steps)
    if count == 0:
        return [] if empty else ["expected at least one step, got none"]
    if count > max_steps:
        return [f"expected at most {max_steps} steps, got {count}"]
    problems: list[str] = []
    for number, step in enumerate(plan.steps, 1):
        if step.worker is not None and step.worker not in workers:
            problems.append(f"step {number}: {step.worker!r} is no worker here, expected one of {list(workers)}")
        if not step.subtask.strip():
            problems.append(f"step {number}: expected a subtask, got an empty text")
        problems += _access_problems(number, step.access)
    used = {read for number in range(1, count + 1) for read in plan.reads(number)}
    for number in range(1, count):
        if number not in used:
            problems.append(f"step {number}: no later step sees its output; name it in an access list or leave it out")
    return problems


def _access_problems(number: int, access: Access) -> list[str]:
    if access == "all":
        return []
    problems = []
    for position in access:
        if position >= number:
            problems.append(f"step {number}: its access list names step {position}, expected only earlier steps")
        elif position < 1:
            problems.append(f"step {number}: its access list names step {position}; steps are counted from 1")
    return problems
