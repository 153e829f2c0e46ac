"""`trinity`: thinker, solver, verifier in turns, at most `max_turns`; the answer is the last solver's.

Trinity (arXiv 2512.04695 §3.2): each turn a worker and a role are chosen; the run ends with a verifier's accept, or
after the last turn. Evaluator–optimiser is the same with a score: `stop_score` in place of the verdict, and the
critique shown to the solver. The order of roles is the rule that holds where no router is asked for them.

Ours, where paper and code differ or say nothing (docs/papers.md): a verifier before any answer becomes solver; the
last turn is a solver's unless the newest answer awaits its verdict; `avoid_rejected` keeps a worker whose answer was
not accepted from solving again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from harness.engine.acts import Act, Call, End, Moves, Policy, Reading, Roles, Route
from harness.engine.context import passed_on, remembered
from harness.engine.patterns.roles import TRIO, Part, Role, Scene, messages_for, suggestion_of
from harness.engine.patterns.verdict import score_of, verdict_of
from harness.engine.state import Node, State
from harness.routing.base import Ask
from pointsman.words import MemoryKind, Pattern

MAX_TURNS = 5
"""K of the paper (§3.2)."""


@dataclass(frozen=True)
class TrinitySettings:
    """`roles` in the order of the rule; at least one of them solves. `feedback`: the solver sees the critique."""

    max_turns: int = MAX_TURNS
    roles: tuple[Role, ...] = TRIO
    stop_score: float | None = None
    feedback: bool = False
    avoid_rejected: bool = True


class Trinity(Policy):
    kind: ClassVar[Pattern] = "trinity"
    recalls: ClassVar[tuple[MemoryKind, ...]] = ("tool",)

    def __init__(self, settings: TrinitySettings | None = None, name: str | None = None) -> None:
        super().__init__(name)
        self.settings = settings or TrinitySettings()
        self._roles = {role.name: role for role in self.settings.roles}
        self._solver = next(role for role in self.settings.roles if role.part == "solver")

    def next(self, state: State) -> Moves:
        turns = list(state.nodes.values())
        if turns and not turns[-1].over:
            return ()
        if turns and turns[-1].reason == "accept":
            return End(self.answer(state), "accepted" if self.settings.stop_score is None else "score")
        if len(turns) >= self.settings.max_turns:
            return End(self.answer(state), "turns")
        if turns and turns[-1].fault in ("no_worker", "bad_request", "context_exceeded"):
            return End(self.answer(state), turns[-1].fault)  # another turn would meet the same
        return (self._turn(state, turns),)

    def answer(self, state: State) -> str | None:
        return next((node.key for node in reversed(self._solved(list(state.nodes.values())))), None)

    def read(self, state: State, node: Node) -> Reading | None:
        """A verifier's verdict, a thinker's suggestion."""
        part = self._part(node)
        if part == "thinker":
            suggestion, role = suggestion_of(node.text)
            return Reading(reason=role and f"suggests {role}", data={"suggestion": suggestion, "next": role})
        if part != "verifier":
            return None
        if self.settings.stop_score is None:
            verdict = verdict_of(node.text)
            return Reading(verdict, score=float(verdict == "accept"))
        score = score_of(node.text)
        if score is None:
            return Reading("unparseable")
        return Reading("accept" if score >= self.settings.stop_score else "revise", score=score)

    def _turn(self, state: State, turns: Sequence[Node]) -> Act:
        number = len(turns) + 1
        roles = self._wanted(turns)
        last = number == self.settings.max_turns
        scene = self._scene(state, turns)

        def call(node: Node) -> Call:
            role = self._roles[node.role or self._solver.name]
            solves = role.part == "solver"
            sent = messages_for(role, state.request.messages, scene, scored=self.settings.stop_score is not None)
            return Call(sent, answers=solves, final=solves and last, tools=solves)

        rejected = self._rejected(turns) if self.settings.avoid_rejected and self._solves(roles) else {}
        failed = {node.worker or "": "failed" for node in turns if node.status == "failed"}
        route = Route(self._ask(state, turns), roles, {**rejected, **failed})
        title = f"turn {number} of at most {self.settings.max_turns}"
        return Act(f"turn:{number}", "role", route, call, turn=number, title=title)

    def _wanted(self, turns: Sequence[Node]) -> Roles:
        """The roles of the next turn, the rule's choice first; forced where a thinker named it."""
        has_answer = bool(self._solved(turns))
        instead = {} if has_answer else {
            role.name: self._solver.name for role in self.settings.roles if role.part == "verifier"
        }  # fmt: skip
        first = self._by_rule(turns)
        others = [role.name for role in self.settings.roles if role.name != first]
        return Roles(
            (first, *others),
            about={role.name: role.about for role in self.settings.roles},
            only={role.name: frozenset(role.workers) for role in self.settings.roles if role.workers},
            instead=instead,
            forced=self._suggested(turns),
        )

    def _by_rule(self, turns: Sequence[Node]) -> str:
        """The role after the last one's, round and round. A turn whose worker failed is taken again."""
        order = [role.name for role in self.settings.roles]
        if not turns:
            return order[0]
        last = turns[-1]
        if len(turns) == self.settings.max_turns - 1 and self._part(last) != "solver":
            return self._solver.name
        place = order.index(last.role) if last.role in order else -1
        return order[place] if last.status == "failed" and place >= 0 else order[(place + 1) % len(order)]

    def _suggested(self, turns: Sequence[Node]) -> str | None:
        """The role that a thinker named for this turn: it overrides whoever else would choose it."""
        if not turns or self._part(turns[-1]) != "thinker" or turns[-1].status != "done":
            return None
        wanted: Part | None = turns[-1].data.get("next")
        return next((role.name for role in self.settings.roles if role.part == wanted), None)

    def _scene(self, state: State, turns: Sequence[Node]) -> Scene:
        solved = self._solved(turns)
        latest = solved[-1] if solved else None
        since = [node for node in turns if latest is None or node.turn > latest.turn]
        thoughts = [node.data["suggestion"] for node in since if self._part(node) == "thinker" and node.said]
        critiques = [node.said for node in since if self._part(node) == "verifier" and node.said]
        return Scene(
            latest=latest.said if latest is not None else None,
            suggestion=thoughts[-1] if thoughts else None,
            critique=critiques[-1] if critiques and self.settings.feedback else None,
            tools=tuple(remembered(state.recalled)),
        )

    def _ask(self, state: State, turns: Sequence[Node]) -> Ask:
        """What routers see: the ask, how far the team is, the solvers' answers; no thinker's or verifier's words."""
        ask = state.request.ask
        taken = ", ".join(node.role or "?" for node in turns) or "none"
        lines = [f"Turn {len(turns) + 1} of at most {self.settings.max_turns}. Roles taken so far: {taken}."]
        lines += [f"[{node.role}, turn {node.turn}] {passed_on(node.said)[:2_000]}" for node in self._solved(turns)]
        context = "\n".join([*lines, ask.context]).rstrip()
        return msgspec.structs.replace(ask, context=context)

    def _rejected(self, turns: Sequence[Node]) -> dict[str, str]:
        """The solvers whose answers a verifier did not accept."""
        rejected: dict[str, str] = {}
        answered: Node | None = None
        for node in turns:
            if self._part(node) == "solver" and node.said:
                answered = node
            elif self._part(node) == "verifier" and node.reason == "revise" and answered is not None:
                rejected[answered.answered_by or ""] = "rejected"
        return rejected

    def _solves(self, roles: Roles) -> bool:
        """Whether the rule wants a solver: only then is anybody avoided for a rejected answer."""
        role = roles.forced or roles.names[0]
        return self._part_of(roles.instead.get(role, role)) == "solver"

    def _solved(self, turns: Sequence[Node]) -> list[Node]:
        return [node for node in turns if self._part(node) == "solver" and node.said]

    def _part(self, node: Node) -> Part | None:
        return self._part_of(node.role)

    def _part_of(self, name: str | None) -> Part | None:
        role = self._roles.get(name or "")
        return role.part if role is not None else None
