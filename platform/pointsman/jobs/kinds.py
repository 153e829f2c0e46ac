"""The closed list of job kinds: their parameters, stages, queues and what they will probably cost.

Read by gateway, dashboard, command line and worker alike. The code that runs a kind may need a room
above: it is found by the entry-point group `pointsman.jobs`, in the worker alone (`runners`). A new
kind is a dataclass and an entry here, and an entry point where its runner is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from pointsman.errors import UserError
from pointsman.jobs import params as parameters
from pointsman.jobs.conducting import CONDUCTING
from pointsman.jobs.kind import Estimate as Estimate
from pointsman.jobs.kind import Facts as Facts
from pointsman.jobs.kind import JobKind as JobKind
from pointsman.jobs.learning import LEARNING
from pointsman.jobs.params import option
from pointsman.jobs.rewarding import REWARDING
from pointsman.jobs.turning import TURNING
from pointsman.jobs.turning import Flywheel as Flywheel

Fault = Literal["none", "error", "exit", "abort", "skip"]
Load = Literal["sleep", "hash"]


@dataclass(frozen=True)
class SelfTest:
    """Exercises the machinery of jobs: steps with checkpoints, parts shared by workers, one file, one effect."""

    steps: int = option(20, "steps of the first stage, a checkpoint after each", least=0, most=1_000_000)
    seconds: float = option(0.05, "how long a step takes", least=0, most=3_600)
    load: Load = option("sleep", "what a step does meanwhile: sleep, or hash in native code without a pause")
    chunks: int = option(20, "parts that workers share", least=0, most=1_000_000)
    chunk_seconds: float = option(0.0, "how long a part takes", least=0, most=3_600)
    concurrency: int = option(4, "parts at a time in each worker", least=1, most=64)
    seed: int = option(1, "the file depends on it, and on steps and chunks", least=0, most=2**53)
    cost: float = option(0.0, "USD that each step says it spent", least=0, most=1_000)
    fault: Fault = option("none", "how it goes wrong")
    fault_at: int = option(0, "at which step or, beyond the steps, at which part", least=0, most=2_000_000)
    small: bool = option(False, "run inside the worker: steps only, without a file")


@dataclass(frozen=True)
class Retention:
    """Deletes what is older than the log is kept."""

    days: int | None = option(None, "days that are kept; null: [log] retention", least=1, most=36_500)


@dataclass(frozen=True)
class Probe:
    """Asks every worker every task of a file, and scores the answers by the tasks' verifiers."""

    file: str = option(help="name of a .jsonl file in the data folder's `tasks`", least=1, most=160)
    name: str | None = option(None, "names the run: the same name goes on; null: the job's id", least=1, most=100)
    repeats: int = option(1, "how often each worker answers each task", least=1, most=100)
    workers: tuple[str, ...] = option((), "which workers; none named: all that chat", most=1_000)
    concurrency: int = option(8, "calls at a time", least=1, most=256)
    per_minute: float | None = option(None, "requests a minute to each worker; null: no limit", least=0.1)


@dataclass(frozen=True)
class Audit:
    """Asks all eligible workers requests that may be learned from: those the gateway drew, or some of the log."""

    from_log: int = option(0, "how many requests of the log; 0: those that the gateway drew", least=0, most=1_000_000)
    name: str | None = option(None, "names a run over the log; null: the job's id", least=1, most=100)
    seed: int = option(1, "another one draws other requests of the log", least=0, most=2**53)
    judge: bool = option(False, "then have the configured judge score the answers")
    concurrency: int = option(8, "calls at a time", least=1, most=256)
    per_minute: float | None = option(None, "requests a minute to each worker; null: no limit", least=0.1)


@dataclass(frozen=True)
class Optimize:
    """Searches for cards and instructions by which the router chooses better, and certifies what it finds."""

    origins: tuple[str, ...] = option(
        ("probe", "audit"), "rows to learn from", least=1, choices=("probe", "audit", "replay", "traffic")
    )
    run: str | None = option(None, "only rows of the probe run of this name", least=1, most=100)
    calls: int = option(1_000, "router calls of the search at most", least=1, most=1_000_000)
    minutes: float | None = option(None, "time at most; null: no limit", least=0.1, most=100_000)
    reward: str | None = option(None, "a reward of the configuration; null: the verifiers' scores", least=1, most=100)
    trade_off: float = option(0.0, "how much reward a dollar is worth; 0: cost is ignored", least=0)
    reflect: str | None = option(None, "a worker that rewrites texts; null: no language model does", least=1, most=100)
    mipro: bool = option(False, "instructions by MIPROv2, too")
    brief: bool = option(False, "try shorter hand-written instructions, too")
    demonstrations: int = option(0, "try this many logged requests as examples", least=0, most=8)
    seed: int = option(1, "another one takes other steps", least=0, most=2**53)
    concurrency: int = option(8, "calls at a time", least=1, most=256)
    promote_as_candidate: bool = option(False, "write a certified winner as a candidate")


@dataclass(frozen=True)
class Gates:
    """Takes the rows of running gates, and promotes, proposes or rolls back."""


@dataclass(frozen=True)
class Drift:
    """Looks whether workers or requests have changed since they were learned from."""

    reward: str = option("default", "the reward spec whose falls are watched")


@dataclass(frozen=True)
class Rollup:
    """Sums the log by the hour for the dashboard's overview."""


@dataclass(frozen=True)
class CanaryDay:
    """Asks every worker a fixed set of tasks and compares the scores with those of its first day."""

    file: str = option(help="the tasks, a .jsonl file in the data folder's `tasks`")
    repeats: int = option(2, "answers of each worker to each task, on the first day", least=2, most=20)
    concurrency: int = option(8, "calls at a time", least=1, most=256)


def _self_test_estimate(params: SelfTest, facts: Facts) -> Estimate:
    seconds = params.steps * params.seconds + params.chunks * params.chunk_seconds / params.concurrency
    return Estimate(seconds, Decimal(str(params.cost)) * params.steps, "its parameters, with one worker")


def _retention_estimate(params: Retention, facts: Facts) -> Estimate:
    return Estimate(None, Decimal(0), "no calls are made; the time depends on how much is old")


def _probe_estimate(params: Probe, facts: Facts) -> Estimate:
    workers = len(params.workers) or facts.workers
    each = "the cost of a call is not known" if facts.usd_per_call is None else f"${facts.usd_per_call:.5f} a call"
    return Estimate(None, None, f"{workers} workers × {params.repeats} × the tasks of {params.file}; {each}")


def _audit_estimate(params: Audit, facts: Facts) -> Estimate:
    if not params.from_log:
        return Estimate(None, None, "what the gateway drew, at most [audit] budget a day")
    calls = params.from_log * facts.workers
    cost = None if facts.usd_per_call is None else facts.usd_per_call * calls
    seconds = None if facts.seconds_per_call is None else facts.seconds_per_call * calls / params.concurrency
    return Estimate(seconds, cost, f"{params.from_log} requests × {facts.workers} workers, as calls were lately")


def _optimize_estimate(params: Optimize, facts: Facts) -> Estimate:
    return Estimate(None, None, f"at most {params.calls} router calls, and about as many again to certify a winner")


def _gates_estimate(params: Gates, facts: Facts) -> Estimate:
    return Estimate(0.1, Decimal(0), "no calls are made")


def _drift_estimate(params: Drift, facts: Facts) -> Estimate:
    return Estimate(None, Decimal(0), "no calls are made; the time depends on what is new in the log")


def _rollup_estimate(params: Rollup, facts: Facts) -> Estimate:
    return Estimate(None, Decimal(0), "no calls are made; about 0.05 s for each hour that is new")


def _canary_estimate(params: CanaryDay, facts: Facts) -> Estimate:
    each = "the cost of a call is not known" if facts.usd_per_call is None else f"${facts.usd_per_call:.5f} a call"
    return Estimate(None, None, f"{facts.workers} workers × the tasks of {params.file}; {each}")


KINDS: Mapping[str, JobKind] = {
    kind.name: kind
    for kind in (
        JobKind(
            "self-test",
            SelfTest,
            "default",
            ("steps", "chunks", "publish"),
            "exercise the machinery of jobs: checkpoints, shared parts, a file, an effect",
            _self_test_estimate,
            shared=True,
            small=lambda params: params.small,
        ),
        JobKind(
            "retention",
            Retention,
            "default",
            ("log", "jobs", "files"),
            "delete what is older than [log] retention, and what nothing refers to",
            _retention_estimate,
        ),
        JobKind(
            "probe",
            Probe,
            "probe",
            ("ask",),
            "ask every worker tasks with verifiers",
            _probe_estimate,
        ),
        JobKind(
            "audit",
            Audit,
            "probe",
            ("ask",),
            "ask all eligible workers logged requests, to compare routers exactly",
            _audit_estimate,
        ),
        JobKind(
            "optimize",
            Optimize,
            "default",
            ("search",),
            "search for cards by which the router chooses better, and certify them",
            _optimize_estimate,
            extra="optimize",
        ),
        JobKind(
            "gates",
            Gates,
            "default",
            ("look",),
            "take the rows of running gates; started by itself while a gate runs",
            _gates_estimate,
            small=lambda params: True,
        ),
        JobKind(
            "drift",
            Drift,
            "default",
            ("pool", "rewards", "mix", "alarms"),
            "look whether workers or requests have changed; started by itself hourly while there is traffic",
            _drift_estimate,
        ),
        JobKind(
            "rollup",
            Rollup,
            "default",
            ("hours",),
            "sum the log by the hour for the dashboard; started by itself while there is traffic",
            _rollup_estimate,
        ),
        JobKind(
            "canary",
            CanaryDay,
            "probe",
            ("ask", "compare"),
            "ask a fixed set of tasks and compare with the first day; to be scheduled daily",
            _canary_estimate,
        ),
        *REWARDING,
        *LEARNING,
        *CONDUCTING,
        *TURNING,
    )
}


def kind_of(name: str) -> JobKind:
    """The kind of that name, or UserError naming those that exist."""
    if (kind := KINDS.get(name)) is None:
        raise UserError(f"kind: no job kind {name[:60]!r}, expected one of {', '.join(KINDS)}")
    return kind


def parse_params(kind: str, raw: object) -> Any:
    """The kind's dataclass filled from JSON values, or UserError naming key and expectation."""
    return parameters.parse(kind_of(kind).params, {} if raw is None else raw)


def estimate(kind: str, raw: object, facts: Facts | None = None) -> Estimate:
    """What such a job would take."""
    return kind_of(kind).estimate(parse_params(kind, raw), facts or Facts())
