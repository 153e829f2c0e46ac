"""The reward of one outcome, and the comparable rewards of a full-information row. Pure functions.

Two numbers are kept apart. `value` is the intended worker's: what its being chosen brought, so that a fallback
after its failure, or no answer at all, is its poor outcome. `skill` is the answer's, for the worker that gave it,
and is None where nobody answered: a provider's outage says nothing of what a worker can do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from pointsman.rewards.spec import RewardSpec
from pointsman.rewards.words import Word, opinion
from pointsman.words import OutcomeStatus, RewardReason, RewardSource

POOR = 0.0
FAILED: dict[OutcomeStatus, RewardReason] = {
    "upstream_error": "upstream_error",
    "timeout": "timeout",
    "truncated": "truncated",
}


@dataclass(frozen=True)
class Ended:
    """How a call or a whole request ended. `arm` is the intended worker, `worker` the one that answered.

    `score` is a verifier's and `judge` a judge's, in [0, 1]; `cost` in USD and `seconds` are None where unknown.
    """

    status: OutcomeStatus
    arm: str | None
    worker: str | None
    ended_at: datetime
    score: float | None = None
    judge: float | None = None
    cost: Decimal | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Terms:
    """What is known of an outcome. Quality terms are in [0, 1]."""

    verifier: float | None = None
    feedback: float | None = None
    judge: float | None = None
    cost: Decimal | None = None
    seconds: float | None = None

    def to_json(self) -> dict[str, Any]:
        """What is known, money as text."""
        known = {name: value for name, value in vars(self).items() if value is not None}
        return {name: format(value, "f") if isinstance(value, Decimal) else value for name, value in known.items()}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Terms:
        cost = stored.get("cost")
        return cls(**{**stored, "cost": None if cost is None else Decimal(cost)})


@dataclass(frozen=True)
class Reward:
    """`source` is the term that is the quality; from a judge it is in judge units until it has been calibrated.

    `reason` says why `value` is None or poor. `weighed` are the terms that the numbers were computed from.
    """

    value: float | None
    skill: float | None
    source: RewardSource | None
    reason: RewardReason | None
    terms: Terms
    weighed: frozenset[str]

    @property
    def judge_units(self) -> bool:
        return self.source == "judge"


def reward(outcome: Ended, feedback: Iterable[Word], spec: RewardSpec) -> Reward:
    """The reward of one outcome; `feedback` are the words that stand."""
    terms = terms_of(outcome, feedback, spec)
    return _settled(outcome, terms, spec, _wanted(spec))


def rewards_of_row(outcomes: Sequence[Ended], spec: RewardSpec) -> list[Reward]:
    """The rewards of a full-information row's outcomes, in their order, comparable with each other.

    Only terms that every outcome with an answer has are weighed. Feedback is none of them: it was given on the
    answer that was served, and would enter one arm alone.
    """
    all_terms = [terms_of(outcome, (), spec) for outcome in outcomes]
    answered = [t for outcome, t in zip(outcomes, all_terms, strict=True) if outcome.status not in FAILED]
    common = frozenset(name for name in _wanted(spec) if all(getattr(t, name) is not None for t in answered))
    return [_settled(outcome, t, spec, common) for outcome, t in zip(outcomes, all_terms, strict=True)]


def terms_of(outcome: Ended, feedback: Iterable[Word], spec: RewardSpec) -> Terms:
    """The terms of an outcome, whatever the spec does with them."""
    return Terms(outcome.score, opinion(feedback, spec), outcome.judge, outcome.cost, outcome.seconds)


def priced_anew(known: Reward, cost: Decimal | None, spec: RewardSpec) -> Reward:
    """The same reward with another cost, such as the tokens' at today's price."""
    terms = replace(known.terms, cost=cost)
    if known.reason in ("no_cost", "no_latency") or (known.reason is None and known.value is not None):
        value, source, reason = _value(terms, spec, known.weighed)
        return Reward(value, value, source, reason, terms, known.weighed)
    skill = _value(terms, spec, known.weighed)[0] if known.skill is not None else None
    return replace(known, terms=terms, skill=skill)


def _settled(outcome: Ended, terms: Terms, spec: RewardSpec, weighed: frozenset[str]) -> Reward:
    if (failed := FAILED.get(outcome.status)) is not None:
        return Reward(POOR, None, None, failed, terms, weighed)
    value, source, reason = _value(terms, spec, weighed)
    if outcome.worker is not None and outcome.arm is not None and outcome.worker != outcome.arm:
        return Reward(POOR, value, source, "fallback", terms, weighed)
    return Reward(value, value, source, reason, terms, weighed)


def _value(
    terms: Terms, spec: RewardSpec, weighed: frozenset[str]
) -> tuple[float | None, RewardSource | None, RewardReason | None]:
    """The number, what its quality is, and why there is no number."""
    source = next((name for name in spec.quality if name in weighed and getattr(terms, name) is not None), None)
    if source is None:
        return None, None, "unknown"
    total, scale = float(getattr(terms, source)), 1.0
    if spec.cost_weight and "cost" in weighed:
        if terms.cost is None:
            return None, source, "no_cost"
        total += spec.cost_weight * (1 - min(float(terms.cost / spec.cost_scale), 1.0))
        scale += spec.cost_weight
    if spec.latency_weight and "seconds" in weighed:
        if terms.seconds is None:
            return None, source, "no_latency"
        total += spec.latency_weight * (1 - min(terms.seconds / spec.latency_scale, 1.0))
        scale += spec.latency_weight
    return total / scale, source, None


def _wanted(spec: RewardSpec) -> frozenset[str]:
    """The terms that the spec weighs."""
    more = [name for name, weight in (("cost", spec.cost_weight), ("seconds", spec.latency_weight)) if weight]
    return frozenset([*spec.quality, *more])
