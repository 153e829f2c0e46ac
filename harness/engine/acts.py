"""What a pattern may ask of the engine, and what a pattern is.

A pattern is a small policy over the state: `next` names all that may run now, by key; what has begun already is not
begun again, so a policy need not remember what it asked for. It computes and never waits: choosing, calling,
counting, logging and stopping are the engine's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from harness.engine.memory import Item
from harness.engine.request import Message
from harness.engine.state import Node, State
from harness.routing.base import Ask
from harness.routing.eligibility import Eligibility
from pointsman.pool import Worker
from pointsman.words import CallPurpose, DecisionKind, Forced, MemoryKind, ParseStatus, Pattern


@dataclass(frozen=True)
class Roles:
    """The roles that a turn may take, in the pattern's own order of preference: a rule takes the first.

    `about` says what each does, for a router that is asked. `only` limits a role to some workers. `instead` maps a
    role that cannot be now to the one that stands in for it (a verifier before any answer). `forced` is not
    drawn: somebody who may say so has named it.
    """

    names: tuple[str, ...]
    about: Mapping[str, str] = field(default_factory=dict)
    only: Mapping[str, frozenset[str]] = field(default_factory=dict)
    instead: Mapping[str, str] = field(default_factory=dict)
    forced: str | None = None


@dataclass(frozen=True)
class Route:
    """A worker is drawn: by the routers' scores for `ask`, from the eligible ones without `avoid` (name → why not).

    `only` names those that may be drawn; where none of them is eligible, all that are. `tools`: only who declares that
    it can call tools, where anybody does: the pattern's own are offered to nobody else.
    """

    ask: Ask
    roles: Roles | None = None
    avoid: Mapping[str, str] = field(default_factory=dict)
    only: frozenset[str] | None = None
    tools: bool = False


@dataclass(frozen=True)
class Named:
    """The worker is named already: by a plan, by the configuration, by another worker. No draw, p = 1."""

    worker: str
    forced: Forced = "plan"


@dataclass(frozen=True)
class Pick:
    """A choice between options that are no workers, from given probabilities; one option is no draw."""

    probabilities: Mapping[str, float]
    forced: Forced = "rule"


@dataclass(frozen=True)
class Prompt:
    """What an orchestrator LLM is asked: `options` are its letters for workers, `template_hash` names the wording."""

    messages: list[Message]
    options: Mapping[str, str]
    template_hash: str
    max_tokens: int


@dataclass(frozen=True)
class Write:
    """An orchestrator LLM writes something (a plan). It is no worker, and its tokens are orchestration.

    `prompt` gets the eligible workers and a seed for the order of its options.
    """

    prompt: Callable[[tuple[Worker, ...], int], Prompt]


OwnTools = Sequence[dict[str, Any]] | Callable[[tuple[Worker, ...]], Sequence[dict[str, Any]]]
"""A pattern's tools, or what makes them from the workers that may be chosen."""


@dataclass(frozen=True)
class Call:
    """What the chosen worker is sent.

    `answers`: its reply may become the answer, so the client's wishes about form go with it. `final`: if it says
    anything it is the answer, and may be streamed as it comes. `tools`: the client's tools go with it. `own_tools`
    are the pattern's: a reply that calls one of them is done, and the pattern goes on from it; a worker that declares
    no tools gets none. They may be a function of the workers that may be chosen when the call is made. `keep` holds
    the messages in the state when the call is over. `alone`: no fallback may answer in its place. `fields` stand in
    place of the request's own of the same name.
    `messages` may be a function of the worker that is asked first (its card may stand in them).
    """

    messages: list[Message] | Callable[[Worker], list[Message]]
    answers: bool = False
    final: bool = False
    tools: bool = False
    own_tools: OwnTools = ()
    purpose: CallPurpose = "serve"
    keep: bool = False
    alone: bool = False
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """What a pattern read from a node's reply. `chosen` names a choice that the reply made, `plan` goes on record."""

    reason: str | None = None
    score: float | None = None
    chosen: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    parse_status: ParseStatus | None = None
    plan: Mapping[str, Any] | None = None
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Act:
    """One node to begin: a decision and, where `call` is given, the call that it is about.

    `call` gets the node once its worker and role stand. `parent` is another node's key, None the root. `title` tells
    people what begins here; `plan` is what the decision puts on record beside its choice.
    """

    key: str
    kind: DecisionKind
    choose: Route | Named | Pick | Write
    call: Callable[[Node], Call] | None = None
    parent: str | None = None
    turn: int = 0
    step: int | None = None
    title: str = ""
    plan: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class End:
    """The run is over: whose reply is the answer (a key; None: there is none), and why it ended here."""

    answer: str | None
    reason: str


Moves = Sequence[Act] | End


class Policy:
    """What every pattern is. `team`: it has a tree under a root of its own and may wait for tool results.

    `recalls` are the kinds of memory that a run begins with.
    """

    kind: ClassVar[Pattern]
    team: ClassVar[bool] = True
    recalls: ClassVar[tuple[MemoryKind, ...]] = ()

    def __init__(self, name: str | None = None) -> None:
        self.name = name or self.kind

    def next(self, state: State) -> Moves:
        """All that may run now, or the end. Nothing to begin means: wait for what runs."""
        raise NotImplementedError

    def answer(self, state: State) -> str | None:
        """The key of the best answer so far, for a run that a limit ends."""
        raise NotImplementedError

    def read(self, state: State, node: Node) -> Reading | None:
        """What the pattern makes of a reply, once it is there: goes to the node and on record."""
        return None

    def keepsakes(self, state: State) -> Sequence[Item]:
        """What the pattern wants remembered when the run has ended."""
        return ()


def usable(eligible: Eligibility, route: Route) -> Eligibility:
    """The eligible workers that a route allows: those of `only` and with `tools`, without those to `avoid`.

    A wish that would leave nobody is passed over: of all together `avoid`, else the others.
    """
    workers = eligible.workers
    allowed = {w.name: "not_named" for w in workers if route.only and w.name not in route.only}
    allowed |= {w.name: "no_tools" for w in workers if route.tools and "tools" not in w.capabilities}
    for masked in ({**allowed, **route.avoid}, allowed, route.avoid):
        left = tuple(worker for worker in workers if worker.name not in masked)
        if left and len(left) < len(workers):
            reasons = {name: masked.get(name) if why is None else why for name, why in eligible.reasons.items()}
            return Eligibility(reasons, eligible.health_lifted, left)
    return eligible
