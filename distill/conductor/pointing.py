"""Subtasks that point at the request instead of repeating it.

A step's worker sees the request beside its subtask, so "Do part 2 of the request." says as much as a copy of that part,
in fewer tokens, and a small model learns it sooner than copying.
"""

from __future__ import annotations

from dataclasses import replace

from harness.engine.plan.grammar import Plan

WHOLE = "Do the request."
PART = "Do part {} of the request."


def pointing(plan: Plan, request: str) -> Plan:
    """The plan with every subtask that stands in the request word for word replaced by a pointer to it.

    Parts are numbered by where they stand in the request. What is not a copy stays as it is.
    """
    if len(plan.steps) == 1 and plan.steps[0].subtask.strip() == request.strip():
        return Plan((replace(plan.steps[0], subtask=WHOLE),))
    copied = {step.subtask: request.find(step.subtask) for step in plan.steps if step.subtask in request}
    order = {subtask: number for number, subtask in enumerate(sorted(copied, key=lambda one: copied[one]), 1)}
    # The last step of several beside each other puts them together: words of the request, but none of its parts.
    closing = plan.steps[-1].subtask if len(plan.steps) > 1 and plan.steps[-1].access == "all" else None
    return Plan(
        tuple(
            replace(step, subtask=PART.format(order[step.subtask]))
            if step.subtask in order and step.subtask != closing
            else step
            for step in plan.steps
        )
    )
