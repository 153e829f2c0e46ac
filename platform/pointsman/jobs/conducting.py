"""The job kinds of a learned conductor: examples, supervised fine-tuning, group-relative policy optimisation.

Their runners are in `distill.conductor` (extra `distill`). A data job or a training job is named by its id, or by its
first eight characters.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from pointsman.jobs.kind import Estimate, Facts, JobKind
from pointsman.jobs.params import option

ConductorSource = Literal["log", "sandbox"]
ConductorForm = Literal["short", "full"]
ConductorTuning = Literal["lora", "svf", "full"]
ConductorFamily = Literal["two_step", "errands", "checkable", "one_skill"]
Cards = Literal["world", "truthful"]

_FAMILIES: tuple[ConductorFamily, ...] = ("two_step", "one_skill")


@dataclass(frozen=True)
class ConductorData:
    """Makes training examples of workflows that ended well: of the log, or of rollouts in the sandbox."""

    source: ConductorSource = option("log", "logged workflow and trinity episodes, or sandbox rollouts")
    reward: str = option("default", "the reward spec that logged episodes are read under", least=1, most=100)
    least_reward: float = option(0.5, "what ended well", least=0, most=1)
    shows: int = option(1, "orders and pools that each logged episode is shown in", least=1, most=100)
    form: ConductorForm = option("short", "the prompt: its data alone, or with the prompted conductor's instructions")
    point: bool = option(True, "subtasks that repeat the request point at it instead")
    world: int = option(1, "the seed of the sandbox's world", least=0, most=2**31)
    cards: Cards = option("world", "the sandbox's cards")
    families: tuple[ConductorFamily, ...] = option(
        _FAMILIES, "the sandbox's tasks", least=1, choices=("two_step", "errands", "checkable", "one_skill")
    )
    tasks: int = option(1_000, "sandbox tasks", least=1, most=1_000_000)
    assignments: int = option(2, "random assignments of workers to each plan", least=0, most=1_000)
    seed: int = option(1, "another one takes other pools and orders", least=0, most=2**53)


@dataclass(frozen=True)
class ConductorSftJob:
    """Fine-tunes a causal language model on a data job's examples; the best learning rate by validation reward."""

    data: str = option(help="the data job", least=8, most=36)
    base: str = option("Qwen/Qwen3-0.6B", "a folder or a hub name; `tiny`: an untrained Qwen3 of 2 million parameters")
    revision: str | None = option(None, "the hub's revision of the base", least=1, most=200)
    tuning: ConductorTuning = option("lora", "what is trained: low-rank updates, singular values, everything")
    rank: int = option(16, "of low-rank updates", least=1, most=1_024)
    learning_rate: float = option(3e-4, "of AdamW", least=1e-9, most=1)
    three_rates: bool = option(True, "a third of it and three times as much are tried too; the best stays")
    steps: int = option(600, "at most, for each learning rate", least=1, most=1_000_000)
    batch: int = option(16, "examples of a step", least=1, most=4_096)
    look_every: int = option(50, "steps between looks at the validation reward", least=1, most=100_000)
    validation: int = option(64, "sandbox tasks that a look plans for", least=1, most=10_000)
    world: int = option(1, "the sandbox's world of those tasks", least=0, most=2**31)
    cards: Cards = option("world", "the sandbox's cards")
    families: tuple[ConductorFamily, ...] = option(
        _FAMILIES, "the sandbox's tasks", least=1, choices=("two_step", "errands", "checkable", "one_skill")
    )
    seed: int = option(1, "another one takes other steps", least=0, most=2**53)


@dataclass(frozen=True)
class ConductorGrpoJob:
    """Trains a fine-tuned conductor on by GRPO, on rollouts of contested requests through the serving engine."""

    start: str = option(help="the fine-tuning job whose conductor is the start", least=8, most=36)
    world: int = option(1, "the seed of the sandbox's world", least=0, most=2**31)
    cards: Cards = option("world", "the sandbox's cards")
    families: tuple[ConductorFamily, ...] = option(
        _FAMILIES, "the sandbox's tasks", least=1, choices=("two_step", "errands", "checkable", "one_skill")
    )
    tasks: int = option(400, "requests that contested ones are looked for in", least=1, most=1_000_000)
    file: str | None = option(
        None, "a file of tasks (JSONL) to plan for, carried out by the configured workers; else the sandbox", least=1
    )
    validation: int = option(64, "tasks that a look plans for", least=1, most=10_000)
    steps: int = option(200, "at most", least=1, most=1_000_000)
    groups: int = option(4, "requests of a step", least=1, most=1_024)
    generations: int = option(16, "plans of each request", least=2, most=1_024)
    learning_rate: float = option(2e-4, "of AdamW", least=1e-9, most=1)
    tuning: ConductorTuning = option("full", "what is trained")
    beta: float = option(0.0, "of the divergence from the start", least=0, most=10)
    form_bonus: float = option(0.05, "paid for a plan that can be read", least=0, most=0.5)
    cost_weight: float = option(0.1, "the most that a dear answer pays", least=0, most=0.49)
    max_worker_tokens: int = option(4_096, "of every worker's reply", least=1, most=1_000_000)
    max_calls: int = option(0, "rollouts in all; 0: no limit", least=0)
    patience: int = option(8, "steps without a group that teaches, before there is no signal", least=1, most=10_000)
    look_every: int = option(10, "steps between looks at the validation reward", least=1, most=100_000)
    seed: int = option(1, "another one takes other steps", least=0, most=2**53)


def _data_estimate(params: ConductorData, facts: Facts) -> Estimate:
    if params.source == "log":
        return Estimate(None, Decimal(0), "no calls are made; the time depends on the log")
    rollouts = params.tasks * (1 + params.assignments)
    return Estimate(0.004 * rollouts, Decimal(0), f"{rollouts} rollouts in the sandbox, which costs nothing")


def _sft_estimate(params: ConductorSftJob, facts: Facts) -> Estimate:
    steps = params.steps * (3 if params.three_rates else 1)
    return Estimate(None, Decimal(0), f"no calls are made; {steps} steps at most; the time depends on the base")


def _grpo_estimate(params: ConductorGrpoJob, facts: Facts) -> Estimate:
    rollouts = params.steps * params.groups * params.generations
    if params.file is None:
        return Estimate(None, Decimal(0), f"{rollouts} rollouts in the sandbox at most, which costs nothing")
    each = "the cost of a call is not known" if facts.usd_per_call is None else f"${facts.usd_per_call:.5f} a call"
    return Estimate(None, None, f"{rollouts} rollouts at most, of one to five calls each; {each}")


CONDUCTING: tuple[JobKind, ...] = (
    JobKind(
        "conductor_data",
        ConductorData,
        "train",
        ("examples", "store"),
        "make training examples of workflows that ended well",
        _data_estimate,
        extra="distill",
    ),
    JobKind(
        "conductor_sft",
        ConductorSftJob,
        "train",
        ("train", "store"),
        "fine-tune a small language model to plan workflows",
        _sft_estimate,
        extra="distill",
    ),
    JobKind(
        "conductor_grpo",
        ConductorGrpoJob,
        "train",
        ("contested", "train", "store"),
        "train a conductor on by GRPO, on rollouts through the serving engine",
        _grpo_estimate,
        extra="distill",
    ),
)
