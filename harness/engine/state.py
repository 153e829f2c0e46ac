"""What a run knows: the nodes of its tree so far. A pattern decides from this and from nothing else.

All of it is plain data with a JSON form, so a run that waits for its client's tool results is kept as text
and goes on in another process.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal

import msgspec

from harness.engine.memory import Item
from harness.engine.request import Message, Request
from pointsman.words import CallPurpose, DecisionKind, Pattern

NodeStatus = Literal[
    "open",  # its worker is being chosen, or is at work
    "waiting",  # its worker asked for tools that the client runs
    "done",
    "failed",  # no worker answered, `fault` says why
]


class Node(msgspec.Struct):
    """One decision and what came of it. `key` is the pattern's own name for it, unique in a run.

    `worker` is the intended arm, `answered_by` who answered in the end. `chosen` is the choice by its own name (a
    worker's, or an option such as `stop`). `text` is the reply, `tool_calls` what it asked for. `data` is what the
    pattern read from the reply (`Policy.read`). `messages` are what the worker saw: held while the node is under way,
    and beyond that where the pattern keeps them. `options` are the letters of an orchestrator's prompt.
    """

    key: str
    id: str
    request_id: str
    kind: DecisionKind
    turn: int = 0
    step: int | None = None
    parent: str | None = None
    status: NodeStatus = "open"
    chosen: str | None = None
    worker: str | None = None
    answered_by: str | None = None
    role: str | None = None
    propensity: float | None = None
    text: str | None = None
    tool_calls: list[dict[str, Any]] = []
    fault: str | None = None
    reason: str | None = None
    score: float | None = None
    data: dict[str, Any] = {}
    options: dict[str, str] = {}
    messages: list[Message] = []
    answers: bool = False
    tools: bool = False
    final: bool = False
    purpose: CallPurpose = "serve"
    keep: bool = False
    own_tools: list[dict[str, Any]] = []
    fallbacks: list[str] = []
    issued: dict[str, str | None] = {}
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: Decimal | None = Decimal(0)

    def nobody(self) -> None:
        """Fails for want of a worker that may be chosen."""
        self.status, self.fault, self.reason = "failed", "no_worker", "no worker may be chosen"

    @property
    def over(self) -> bool:
        return self.status in ("done", "failed")

    @property
    def said(self) -> str:
        """Its reply's text, empty where there is none."""
        return (self.text or "").strip() if self.status == "done" else ""


class State(msgspec.Struct):
    """One run of one pattern. `pattern` is its kind, `name` what it is configured as.

    `workflow` counts the runs of the episode that this memory knows of: what is `recalled` is from earlier ones
    alone, so that nothing passes between the workers of one workflow but by its access lists.
    """

    request: Request
    pattern: Pattern
    name: str
    workflow: int = 0
    recalled: list[Item] = []
    nodes: dict[str, Node] = {}

    def __getitem__(self, key: str) -> Node:
        return self.nodes[key]

    def get(self, key: str) -> Node | None:
        return self.nodes.get(key)

    @property
    def waiting(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.status == "waiting"]

    def tool_call_ids(self) -> list[str]:
        """The ids under which the client knows the tool calls that this run waits for."""
        return [identity for node in self.waiting for identity in node.issued]


def encode_state(state: State) -> bytes:
    return msgspec.json.encode(state)


def decode_state(raw: bytes | str) -> State:
    """Raises `msgspec.MsgspecError` for what is no state of this version."""
    return msgspec.json.decode(raw, type=State)
