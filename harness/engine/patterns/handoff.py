"""`handoff`: who has the conversation answers it or hands it over, and the new worker owns it from then on.

As in the OpenAI Agents SDK: every other worker is a tool (`transfer_tools`), offered as long as it may be chosen (its
mask is the SDK's `is_enabled`); calling one is the routing decision; what the new worker sees of the conversation is up
to `context` (the SDK's `input_filter`). The owner stays through the episode (`ownership`). At most `max_handoffs` in a
request, and nobody gets it back in the same request: then no transfer is offered, so a run ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from harness.engine.acts import Act, Call, End, Moves, Named, Policy, Reading, Route
from harness.engine.context import Block, with_blocks
from harness.engine.memory import Item
from harness.engine.patterns.ownership import cache_note, owner_item, owner_of
from harness.engine.patterns.transfer_tools import transfer_of, transfer_tools
from harness.engine.request import Message
from harness.engine.state import Node, State
from pointsman.pool import Worker
from pointsman.words import DecisionKind, MemoryKind, Pattern

Context = Literal["all", "no_tools", "last"]
REASON_CHARS = 2_000


@dataclass(frozen=True)
class HandoffSettings:
    """`start` None: the router chooses who begins. `workers` may be handed over to; empty: all."""

    start: str | None = None
    workers: frozenset[str] = frozenset()
    max_handoffs: int = 3
    context: Context = "all"


class Handoff(Policy):
    kind: ClassVar[Pattern] = "handoff"
    recalls: ClassVar[tuple[MemoryKind, ...]] = ("context",)

    def __init__(self, settings: HandoffSettings | None = None, name: str | None = None) -> None:
        super().__init__(name)
        self.settings = settings or HandoffSettings()

    def next(self, state: State) -> Moves:
        turns = list(state.nodes.values())
        if not turns:
            return (self._first(state),)
        last = turns[-1]
        if not last.over:
            return ()
        if last.status == "failed":
            return self._taken_back(state, turns)
        to = transfer_of(last)
        if to is None:
            return End(last.key, f"{len(turns) - 1} handoffs")
        return (self._turn(state, turns, Named(to[0], "suggested"), reason=to[1]),)

    def answer(self, state: State) -> str | None:
        """The newest reply that has words or hands nothing over."""
        done = [node for node in state.nodes.values() if node.status == "done"]
        return next((node.key for node in reversed(done) if node.said or transfer_of(node) is None), None)

    def read(self, state: State, node: Node) -> Reading | None:
        to = transfer_of(node)
        return Reading(f"hands over to {to[0]}") if to else None

    def keepsakes(self, state: State) -> Sequence[Item]:
        done = [node for node in state.nodes.values() if node.status == "done" and transfer_of(node) is None]
        if not done or not state.request.store:
            return ()
        return (owner_item(state, done[-1].answered_by or ""),)

    def _first(self, state: State) -> Act:
        """Whoever owns the episode; at its beginning or after a compaction, the first worker or the router's choice."""
        owner = owner_of(state)
        if owner is not None and not owner.compacted:
            return self._turn(state, (), Named(owner.worker, "sticky"))
        start = self.settings.start
        only = self.settings.workers or None
        choose = Named(start, "rule") if start else Route(state.request.ask, only=only, tools=True)
        return self._turn(state, (), choose, plan=cache_note(state, owner))

    def _turn(
        self,
        state: State,
        turns: Sequence[Node],
        choose: Named | Route,
        reason: str | None = None,
        plan: Mapping[str, Any] | None = None,
    ) -> Act:
        number = len(turns)
        before = turns[-1] if turns else None
        if before is not None:
            plan = {"from": before.answered_by, "reason": (reason or "")[:REASON_CHARS]}

        def call(node: Node) -> Call:
            tools = self._offer(node, turns)
            return Call(
                lambda worker: self._messages(state, worker, before, reason),
                answers=True,
                final=True,
                tools=True,
                own_tools=tools,
            )

        title = f"{choose.worker} takes over" if before is not None and isinstance(choose, Named) else "answering"
        parent = before.key if before is not None else None
        kind: DecisionKind = "route" if before is None else "delegate"
        return Act(f"turn:{number}", kind, choose, call, parent, number, title=title, plan=plan)

    def _taken_back(self, state: State, turns: Sequence[Node]) -> Moves:
        """Whoever was to take over cannot: the one before answers by itself, once."""
        earlier = next((node for node in reversed(turns[:-1]) if node.status == "done"), None)
        if earlier is None or sum(node.status == "failed" for node in turns) > 1:
            return End(self.answer(state), turns[-1].fault or "failed")
        worker = earlier.answered_by or ""
        return (self._turn(state, turns, Named(worker, "fallback"), reason=f"{turns[-1].worker} cannot be reached"),)

    def _offer(self, node: Node, turns: Sequence[Node]) -> Callable[[tuple[Worker, ...]], Sequence[dict[str, Any]]]:
        """The transfers that may be asked for now. Which tool means whom is kept with the node."""
        had = {name for turn in turns for name in (turn.worker, turn.answered_by)} | {node.worker}
        over = len(turns) >= self.settings.max_handoffs or any(turn.status == "failed" for turn in turns)
        allowed = self.settings.workers

        def offered(workers: tuple[Worker, ...]) -> Sequence[dict[str, Any]]:
            may = [one for one in workers if one.name not in had and (not allowed or one.name in allowed)]
            made = transfer_tools([] if over else may)
            node.options = {tool: worker for tool, (worker, _) in made.items()}
            return [tool for _, tool in made.values()]

        return offered

    def _messages(self, state: State, worker: Worker, before: Node | None, reason: str | None) -> list[Message]:
        """A worker has to know what it is good at to know when to hand over: its own card goes with it."""
        messages = state.request.messages
        if before is not None:
            messages = filtered(messages, self.settings.context)
        blocks: list[Block] = [("What you are good at", worker.card)] if worker.card else []
        if reason:
            blocks.append(("Why you were given this", reason[:REASON_CHARS]))
        return with_blocks(messages, blocks)


def filtered(messages: Sequence[Message], context: Context) -> list[Message]:
    """The conversation as it is handed over: all of it, without tools' traffic, or the last words with the system's."""
    if context == "all":
        return list(messages)
    spoken = [
        {name: value for name, value in message.items() if name != "tool_calls"}
        for message in messages
        if message.get("role") != "tool" and (message.get("content") or not message.get("tool_calls"))
    ]
    if context == "no_tools":
        return spoken
    system = [message for message in spoken if message.get("role") in ("system", "developer")]
    asked = [message for message in spoken if message.get("role") == "user"]
    return [*system, *asked[-1:]]
