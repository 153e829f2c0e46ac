"""Writes a plan in the grammar."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from harness.engine.plan.grammar import Access, Plan
from harness.routing.slots import quoted

_THINKING = re.compile(r"<(?=/?(?:think|reasoning))", re.IGNORECASE)


def render(plan: Plan, letters: Mapping[str, str]) -> str:
    """Three lines. `letters` has the option letter of each worker; one without a letter goes by its name."""
    workers = [letters.get(step.worker or "", step.worker) for step in plan.steps]
    # Quoted so that nothing in a subtask can be taken for thinking, or is dropped as invisible.
    subtasks = ", ".join(_THINKING.sub(r"\\u003c", quoted(step.subtask)) for step in plan.steps)
    access = [_access(step.access) for step in plan.steps]
    return f"workers = {json.dumps(workers)}\nsubtasks = [{subtasks}]\naccess = {json.dumps(access)}"


def _access(access: Access) -> str | list[int]:
    return "all" if access == "all" else list(access) or "none"
