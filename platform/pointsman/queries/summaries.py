"""What the overview returns: plain values, each share with the number it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from pointsman.queries.proportion import Proportion
from pointsman.queries.savings import CostHour


@dataclass(frozen=True)
class Percentiles:
    """Milliseconds; `n` is the number of rows that had a value."""

    n: int
    p50: float | None
    p95: float | None
    p99: float | None


@dataclass(frozen=True)
class Totals:
    """The whole range in numbers. `success` is of the decisions whose outcome is known."""

    decisions: int
    episodes: int
    success: Proportion
    correct: Proportion
    cost: Decimal
    unknown_cost: int
    router_cost: Decimal
    latency: Percentiles
    overhead: Percentiles
    explored: int
    forced: Mapping[str, int]


@dataclass(frozen=True)
class WorkerLine:
    """One worker: how often it was chosen, how it did then, and what was said of its answers."""

    worker: str
    chosen: int
    share: float
    success: Proportion
    correct: Proportion
    cost: Decimal
    unknown_cost: int
    latency: Percentiles


@dataclass(frozen=True)
class Point:
    """One bucket of time for one worker."""

    start: datetime
    worker: str
    decisions: int
    success: Proportion
    cost: Decimal
    latency_p50: float | None
    latency_p95: float | None


@dataclass(frozen=True)
class MetricLine:
    """Standing feedback by metric; `yes` is of its boolean values, `mean` of its numbers."""

    metric: str
    n: int
    yes: Proportion
    mean: float | None


@dataclass(frozen=True)
class Overview:
    """`versions` counts by router version, `costs` are what savings are computed from.

    `rolled_until`: up to then hourly sums were read, not the log.
    """

    since: datetime | None
    until: datetime | None
    bucket: timedelta
    totals: Totals
    workers: tuple[WorkerLine, ...]
    series: tuple[Point, ...]
    outcomes: Mapping[str, int]
    router_kinds: Mapping[str, int]
    feedback: tuple[MetricLine, ...]
    costs: tuple[CostHour, ...] = ()
    patterns: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, int] = field(default_factory=dict)
    rolled_until: datetime | None = None
