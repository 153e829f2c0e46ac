"""From `[patterns.NAME]` to a pattern and its limits; and the patterns that are there without configuration."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from harness.engine.acts import Policy
from harness.engine.limits import Limits
from harness.engine.patterns.roles import TRIO, Role
from harness.engine.patterns.single import Single
from harness.engine.patterns.trinity import Trinity, TrinitySettings
from harness.engine.patterns.workflow import Workflow, WorkflowSettings
from harness.engine.plan.grammar import Access, Plan, Step
from pointsman.config.model import PatternConfig, StepConfig
from pointsman.errors import UserError

BUILT_IN: Mapping[str, PatternConfig] = {
    "trinity": PatternConfig(pattern="trinity"),
    "ultra": PatternConfig(pattern="workflow"),
}
"""Served as `pointsman-trinity` and `pointsman-ultra`; a pattern of the same name in the file stands in its place."""


def policy_of(name: str, config: PatternConfig) -> Policy:
    """The pattern that `[patterns.NAME]` describes."""
    match config.pattern:
        case "single":
            return Single(name)
        case "trinity":
            return Trinity(_trinity(config), name)
        case "workflow":
            return Workflow(_workflow(config), name)
        case other:
            raise UserError(
                f"patterns.{name}.pattern: {other} cannot be served yet, expected single, trinity or workflow"
            )


def limits_of(config: PatternConfig, *, money: Decimal | None, now: float, seconds: float) -> Limits:
    """The pattern's limits, narrowed by the request's own budget (`money`) and `seconds`. `now` is the loop's time."""
    amounts = [amount for amount in (config.budget, money) if amount is not None]
    return Limits(
        calls=config.max_calls,
        tokens=config.max_tokens,
        money=min(amounts, default=None),
        deadline=now + min(seconds, config.deadline or seconds),
    )


def _trinity(config: PatternConfig) -> TrinitySettings:
    roles = tuple(Role(role.name, role.part, role.prompt, tuple(role.workers)) for role in config.roles)
    return TrinitySettings(config.max_turns, roles or TRIO, config.stop_score, config.feedback)


def _workflow(config: PatternConfig) -> WorkflowSettings:
    fixed = Plan(tuple(map(_step, config.steps))) if config.steps else None
    return WorkflowSettings(config.max_steps, config.rounds, config.repairs, fixed)


def _step(step: StepConfig) -> Step:
    access: Access = "all" if step.access == "all" else () if step.access == "none" else tuple(step.access)
    return Step(step.worker, step.subtask, access, step.gate)
