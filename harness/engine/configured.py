"""From `[patterns.NAME]` to a pattern and its limits; and the patterns that are there without configuration."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from harness.engine.acts import Policy
from harness.engine.limits import Limits
from harness.engine.patterns.cascade import Cascade, CascadeSettings
from harness.engine.patterns.handoff import Handoff, HandoffSettings
from harness.engine.patterns.roles import TRIO, Role
from harness.engine.patterns.sidekick import Sidekick, SidekickSettings
from harness.engine.patterns.single import SingleOfTeam
from harness.engine.patterns.trinity import Trinity, TrinitySettings
from harness.engine.patterns.vote import Vote, VoteSettings
from harness.engine.patterns.workflow import Workflow, WorkflowSettings
from harness.engine.plan.grammar import Access, Plan, Step
from pointsman.config.model import PatternConfig, StepConfig

BUILT_IN: Mapping[str, PatternConfig] = {
    "single": PatternConfig(pattern="single"),
    "trinity": PatternConfig(pattern="trinity"),
    "ultra": PatternConfig(pattern="workflow"),
}
"""Served as `pointsman-NAME`; a pattern of the same name in the file stands in its place."""


def policy_of(name: str, config: PatternConfig, *, certified: float | None = None) -> Policy:
    """The pattern that `[patterns.NAME]` describes.

    `certified` is a cascade's threshold from its calibration, where there is one; it stands in place of the file's.
    """
    match config.pattern:
        case "single":
            return SingleOfTeam(name)
        case "trinity":
            return Trinity(_trinity(config), name)
        case "workflow":
            return Workflow(_workflow(config), name)
        case "cascade":
            return Cascade(_cascade(config, certified), name)
        case "sidekick":
            return Sidekick(_sidekick(config), name)
        case "handoff":
            return Handoff(_handoff(config), name)
        case "vote":
            return Vote(VoteSettings(config.n, tuple(config.workers), config.same, config.method, config.judge), name)


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


def _cascade(config: PatternConfig, certified: float | None) -> CascadeSettings:
    tiers = tuple(map(tuple, config.tiers))
    threshold = config.threshold if certified is None else certified
    return CascadeSettings(tiers, config.verifier, threshold, certified is not None)


def _sidekick(config: PatternConfig) -> SidekickSettings:
    bounds = (config.max_delegations, config.withhold, config.compact_at)
    return SidekickSettings(tuple(config.sidekicks), config.lead, *bounds)


def _handoff(config: PatternConfig) -> HandoffSettings:
    return HandoffSettings(config.start, frozenset(config.workers), config.max_handoffs, config.context)


def _step(step: StepConfig) -> Step:
    access: Access = "all" if step.access == "all" else () if step.access == "none" else tuple(step.access)
    return Step(step.worker, step.subtask, access, step.gate)
