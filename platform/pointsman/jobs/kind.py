"""What a job kind is: its name, parameters, queue, stages, and how it estimates what it will take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pointsman.words import JobQueue


@dataclass(frozen=True)
class Facts:
    """What is known when a job is estimated. None: not known, and the estimate's basis says so."""

    workers: int = 0
    usd_per_call: Decimal | None = None
    seconds_per_call: float | None = None


@dataclass(frozen=True)
class Estimate:
    """What a job will probably take. None: cannot be told. `basis` says what it was computed from."""

    seconds: float | None
    cost_usd: Decimal | None
    basis: str


@dataclass(frozen=True)
class JobKind:
    """One kind of job. `extra` is the pip extra that its runner needs; `small` whether given parameters make it
    a job of milliseconds, which runs inside the worker and not in a process of its own. `shared` kinds have parts
    that other workers may help with."""

    name: str
    params: type[Any]
    queue: JobQueue
    stages: tuple[str, ...]
    summary: str
    estimate: Callable[[Any, Facts], Estimate]
    extra: str | None = None
    shared: bool = False
    small: Callable[[Any], bool] = lambda params: False
