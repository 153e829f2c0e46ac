"""What a run tells while it goes: progress first, the answer last. `Done` or `Failed` is always the last event."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harness.engine.limits import Totals
from harness.engine.state import Node
from pointsman.errors import UpstreamError
from pointsman.words import DecisionKind, OutcomeStatus


@dataclass(frozen=True)
class Decided:
    """A decision was made and is in the log. `chosen` is a worker or an option, None where nobody could be."""

    key: str
    decision_id: str
    kind: DecisionKind
    chosen: str | None
    role: str | None
    propensity: float | None
    turn: int
    step: int | None


@dataclass(frozen=True)
class CallStarted:
    key: str
    worker: str


@dataclass(frozen=True)
class CallEnded:
    """`worker` is who answered, or failed last; `fault` None where all went well."""

    key: str
    worker: str
    fault: str | None
    input_tokens: int
    output_tokens: int
    milliseconds: float


@dataclass(frozen=True)
class Progress:
    """A line for people about what begins now."""

    key: str
    text: str


@dataclass(frozen=True)
class Delta:
    """A piece of the answer. `chunk` is the worker's own event (JSON of a chat completion chunk) where there is one."""

    text: str
    chunk: bytes | None = None


@dataclass(frozen=True)
class Done:
    """The answer. `tool_calls` (then `reason` is `tool_calls`) go to the client, whose results resume the run.

    `node` is the answer's decision, `worker` who wrote it. `totals` are this run's, the orchestration apart.
    """

    answer: str | None
    reason: str
    node: str | None
    worker: str | None
    totals: Totals
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    finish_reason: str = "stop"
    tree: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Failed:
    """There is no answer, or it broke off after some of it was told (`status` `truncated`)."""

    fault: UpstreamError
    status: OutcomeStatus
    reason: str
    totals: Totals
    tree: tuple[Node, ...] = ()


Event = Decided | CallStarted | CallEnded | Progress | Delta | Done | Failed
