"""`cascade`: the cheapest tier answers, a verifier scores it, and where that is not enough the next tier does.

FrugalGPT (arXiv 2305.05176 §3) and the escalation ladder of oh-my-claudecode: a tier is one worker, or several of which
the router chooses. Every attempt is a decision with its call, every verdict one with its score, and each choice to
escalate or not one with the score, the threshold and where that came from. The last tier is not verified. A worker that
fails has its tier escalated: nobody of another tier stands in for it, except for the last tier's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from harness.engine.acts import Act, Call, End, Moves, Named, Pick, Policy, Reading, Route
from harness.engine.context import remembered, with_blocks
from harness.engine.patterns.roles import TRIO, Scene, messages_for
from harness.engine.patterns.verdict import score_of
from harness.engine.state import Node, State
from pointsman.words import MemoryKind, Pattern

Tier = tuple[str, ...]
"""The workers of a tier; empty: all."""
_VERIFIER = next(role for role in TRIO if role.part == "verifier")


@dataclass(frozen=True)
class CascadeSettings:
    """`verifier` None: the router chooses one. A score of at least `threshold` is enough.

    `certified` says where the threshold comes from: a calibration with a bound on failures, or the configuration.
    """

    tiers: tuple[Tier, ...]
    verifier: str | None = None
    threshold: float = 0.5
    certified: bool = False


class Cascade(Policy):
    kind: ClassVar[Pattern] = "cascade"
    recalls: ClassVar[tuple[MemoryKind, ...]] = ("tool",)

    def __init__(self, settings: CascadeSettings, name: str | None = None) -> None:
        super().__init__(name)
        self.settings = settings

    def next(self, state: State) -> Moves:
        number = sum(key.startswith("tier:") for key in state.nodes) - 1
        tier = state.get(f"tier:{number}")
        if tier is None:
            return (self._tier(state, 0),)
        if not tier.over:
            return ()
        if number + 1 == len(self.settings.tiers):
            return End(self.answer(state), "last tier" if tier.said else "last tier: no answer")
        check, verdict = state.get(f"check:{number}"), state.get(f"escalate:{number}")
        if check is None and tier.said:
            return (self._check(state, number, tier),)
        if check is not None and not check.over:
            return ()
        if verdict is None:
            return (self._escalate(number, check),)
        if not verdict.over:
            return ()
        return End(tier.key, f"tier {number + 1}") if verdict.chosen == "accept" else (self._tier(state, number + 1),)

    def answer(self, state: State) -> str | None:
        """The newest tier's answer that there is, unless an earlier one was scored higher."""
        said = [node for node in state.nodes.values() if node.key.startswith("tier:") and node.status == "done"]
        if not said:
            return None
        last = max(said, key=lambda node: node.turn)
        if _score(state, last.turn) is None:  # nobody has judged it: it is of a better tier than all the others
            return last.key
        return max(said, key=lambda node: (_score(state, node.turn) or 0.0, node.turn)).key

    def read(self, state: State, node: Node) -> Reading | None:
        word, _, number = node.key.partition(":")
        if word == "check":
            score = score_of(node.text)
            return Reading("unparseable" if score is None else None, score=score)
        if word == "escalate":
            score = _score(state, int(number))
            return Reading(None if score is not None else "no score", score=score)
        return None

    def _tier(self, state: State, number: int) -> Act:
        names, count = self.settings.tiers[number], len(self.settings.tiers)
        last = number + 1 == count
        messages = with_blocks(state.request.messages, remembered(state.recalled))
        call = Call(messages, answers=True, final=last, tools=True, alone=not last and len(names) == 1)
        parent = f"escalate:{number - 1}" if number else None
        title = f"tier {number + 1} of {count}"
        return Act(f"tier:{number}", "route", one_of(state, names), lambda node: call, parent, number, title=title)

    def _check(self, state: State, number: int, tier: Node) -> Act:
        scene = Scene(latest=tier.said)
        sent = messages_for(_VERIFIER, state.request.messages, scene, scored=True)
        named = self.settings.verifier
        choose = Named(named, "rule") if named else Route(state.request.ask, avoid={tier.answered_by or "": "answered"})
        return Act(f"check:{number}", "role", choose, lambda node: Call(sent), tier.key, number, title="verifying")

    def _escalate(self, number: int, check: Node | None) -> Act:
        score = check.score if check is not None else None
        enough = score is not None and score >= self.settings.threshold
        where = "certificate" if self.settings.certified else "configuration"
        plan = {"tier": number + 1, "score": score, "threshold": self.settings.threshold, "threshold_from": where}
        pick, parent = Pick({"accept" if enough else "escalate": 1.0}), f"tier:{number}"
        return Act(f"escalate:{number}", "escalate", pick, None, parent, number, plan=plan)


def one_of(state: State, names: Sequence[str]) -> Named | Route:
    """The one worker of `names`, or one of them by the router; empty: one of all."""
    if len(names) == 1:
        return Named(names[0], "rule")
    return Route(state.request.ask, only=frozenset(names) if names else None)


def _score(state: State, number: int) -> float | None:
    check = state.get(f"check:{number}")
    return check.score if check is not None and check.status == "done" else None
