"""`sidekick`: a lead with a tool `delegate`, bound to a cheap second worker that keeps a message list of its own.

Devin Fusion as far as it is public (Cognition, June 2026): the lead keeps the plan, what is ambiguous and the last
word, and gives away what a cheaper worker can do; each has its own context, so that neither loses its prompt cache by
the other. Ours: to delegate or not is a decision at every turn of the lead, which makes it by calling the tool or not;
with `withhold` a share of requests is drawn in which there is no tool, so that what delegating is worth can be
estimated. A lead that goes on with a result accepts it; one that calls `reject` or asks for a `redo` does not; either
is an outcome of its own. Delegations run one after another: one hand writes. The sidekick sees its tasks alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from harness.engine.acts import Act, Call, End, Moves, Named, Pick, Policy, Reading, Route
from harness.engine.context import passed_on, with_blocks
from harness.engine.memory import Item
from harness.engine.patterns.ownership import cache_note, owner_item, owner_of
from harness.engine.patterns.sidekick_context import COMPACT, side_context, side_items
from harness.engine.patterns.sidekick_tools import TOOLS, Delegation, asks, delegated, rejected, results
from harness.engine.request import Message
from harness.engine.state import Node, State
from harness.routing.base import Ask
from pointsman.words import MemoryKind, Pattern

SPARE_TURNS = 2
"""Turns of the lead beyond one for each delegation: the first, and one more rejection."""
LEAD = """\
You lead. A sidekick, cheaper than you and with notes of its own, does what you `delegate`: give it the parts that \
need no judgement of yours, each complete in itself, for it sees your task and nothing of this conversation. Keep the \
plan, what is ambiguous and the final answer to yourself. Check what comes back; if a result is of no use, `reject` it \
and do the part yourself, or delegate it anew with `redo`."""


@dataclass(frozen=True)
class SidekickSettings:
    """`lead` None: the router chooses it at the episode's beginning. `sidekicks`: whom the router may choose.

    `withhold` is the share of requests in which the tool is not offered. `compact_at`: tokens of the sidekick's list.
    """

    sidekicks: tuple[str, ...]
    lead: str | None = None
    max_delegations: int = 4
    withhold: float = 0.0
    compact_at: int = 16_000


class Sidekick(Policy):
    kind: ClassVar[Pattern] = "sidekick"
    recalls: ClassVar[tuple[MemoryKind, ...]] = ("context",)

    def __init__(self, settings: SidekickSettings, name: str | None = None) -> None:
        super().__init__(name)
        self.settings = settings

    def next(self, state: State) -> Moves:
        number = sum(key.startswith("lead:") for key in state.nodes) - 1
        lead = state.get(f"lead:{number}")
        if lead is None:
            return self._lead(state, 0)
        if not lead.over:
            return ()
        noted = self._noted(state, number, lead)
        if noted or any(not node.over for node in state.nodes.values()):
            return noted
        if lead.status == "failed":
            return End(self.answer(state), lead.fault or "failed")
        if not asks(lead):
            return End(lead.key, f"{_count(state)} delegated")
        for place in range(len(self._given(state, number))):
            if f"side:{number}:{place}" not in state.nodes:
                return (self._side(state, number, place, lead),)
        if number >= self.settings.max_delegations + SPARE_TURNS:
            return End(self.answer(state), "turns")
        return self._lead(state, number + 1)

    def answer(self, state: State) -> str | None:
        """The lead's newest words; where it has none, the sidekick's."""
        done = [node for node in state.nodes.values() if node.said]
        own = [node for node in done if node.key.startswith("lead:")]
        said = [node for node in own if not asks(node)] or own
        said = said or [node for node in done if node.key.startswith("side:")]
        return said[-1].key if said else None

    def read(self, state: State, node: Node) -> Reading | None:
        if node.key.startswith("review:"):
            accepted = node.chosen == "accepted"
            return Reading("accepted by the lead" if accepted else "rejected by the lead", score=float(accepted))
        return None

    def keepsakes(self, state: State) -> Sequence[Item]:
        led = [node for node in state.nodes.values() if node.key.startswith("lead:") and node.status == "done"]
        if not led or not state.request.store:
            return ()
        return (owner_item(state, led[-1].answered_by or ""), *side_items(state))

    def _lead(self, state: State, number: int) -> Moves:
        """The lead's turn; before the first one the draw of whether it gets the tool."""
        offer = state.get("offer")
        if self.settings.withhold and offer is None:
            options = {"offer": 1 - self.settings.withhold, "withhold": self.settings.withhold}
            return (Act("offer", "delegate", Pick(options)),)
        if offer is not None and not offer.over:
            return ()
        tools = TOOLS if offer is None or offer.chosen == "offer" else ()
        messages = self._lead_messages(state, number, offered=bool(tools))
        call = Call(messages, answers=True, final=True, tools=True, own_tools=tools, keep=True)
        choose, plan = self._who_leads(state, number)
        title = "the lead begins" if number == 0 else "the lead goes on"
        key, parent = f"lead:{number}", _parent(number)
        return (Act(key, "route", choose, lambda node: call, parent, number, title=title, plan=plan),)

    def _who_leads(self, state: State, number: int) -> tuple[Named | Route, Mapping[str, Any] | None]:
        """The lead stays: within a request always, within an episode unless the client compacted it."""
        if number:
            before = state[f"lead:{number - 1}"]
            return Named(before.answered_by or before.worker or "", "sticky"), None
        owner = owner_of(state)
        if owner is not None and not owner.compacted:
            return Named(owner.worker, "sticky"), None
        lead = self.settings.lead
        return Named(lead, "rule") if lead else Route(state.request.ask, tools=True), cache_note(state, owner)

    def _lead_messages(self, state: State, number: int, *, offered: bool) -> list[Message]:
        if number == 0:
            return with_blocks(state.request.messages, [("Your sidekick", LEAD)] if offered else [])
        before = state[f"lead:{number - 1}"]
        sides = [state[f"side:{number - 1}:{place}"] for place in range(len(self._given(state, number - 1)))]
        said: Message = {"role": "assistant", "content": before.text, "tool_calls": before.tool_calls}
        return [*before.messages, said, *results(before, sides)]

    def _side(self, state: State, number: int, place: int, lead: Node) -> Act:
        """One delegation: a compaction first where the list has grown too long, else the task."""
        now, task = side_context(state), delegated(lead)[place].task
        names = frozenset(self.settings.sidekicks)
        stays = Named(now.worker, "sticky") if now.worker is not None and not now.choose_anew else None
        compaction = f"compact:{number}:{place}"
        if stays is not None and compaction not in state.nodes and now.tokens > self.settings.compact_at:
            short = Call([*now.messages, {"role": "user", "content": COMPACT}], alone=True)
            return Act(compaction, "route", stays, lambda node: short, lead.key, number, title="compacting")
        messages = [*now.messages, {"role": "user", "content": passed_on(task)}]
        call = Call(messages, tools=True, keep=True, alone=True)
        choose = stays or Route(Ask(task, tags=state.request.ask.tags), only=names)
        key, title = f"side:{number}:{place}", f"delegated: {task[:120]}"
        plan = {"compaction": now.compaction} if stays is None and now.compaction else None
        return Act(key, "route", choose, lambda node: call, lead.key, number, title=title, plan=plan)

    def _noted(self, state: State, number: int, lead: Node) -> list[Act]:
        """What the lead's reply decided: to delegate or not, and whether the last results were of use."""
        acts: list[Act] = []
        if lead.status == "done" and f"choice:{number}" not in state.nodes:
            chosen = "delegate" if delegated(lead) else "self"
            pick = Pick({chosen: 1.0}, "suggested")
            acts.append(Act(f"choice:{number}", "delegate", pick, None, lead.key, number))
        before = state.get(f"lead:{number - 1}")
        if before is None or lead.status != "done":
            return acts
        for place in range(len(self._given(state, number - 1))):
            side, key = state[f"side:{number - 1}:{place}"], f"review:{number - 1}:{place}"
            if side.status == "done" and key not in state.nodes:
                pick = Pick({"rejected" if rejected(lead) else "accepted": 1.0}, "suggested")
                acts.append(Act(key, "stop", pick, None, side.key, number))
        return acts

    def _given(self, state: State, number: int) -> list[Delegation]:
        """The delegations of a turn that are carried out: none beyond the bound, none once a sidekick has failed."""
        earlier = [node for node in state.nodes.values() if node.key.startswith("side:") and node.turn < number]
        if any(node.status == "failed" for node in earlier):
            return []
        return delegated(state[f"lead:{number}"])[: self.settings.max_delegations - len(earlier)]


def _count(state: State) -> int:
    return sum(key.startswith("side:") for key in state.nodes)


def _parent(number: int) -> str | None:
    return f"lead:{number - 1}" if number else None
