"""`single` (Fugu): one worker per input. Its one decision is the root; a tool call goes to the client as it is."""

from __future__ import annotations

from typing import ClassVar

from harness.engine.acts import Act, Call, End, Moves, Policy, Route
from harness.engine.state import State
from pointsman.words import Pattern

KEY = "answer"


class Single(Policy):
    kind: ClassVar[Pattern] = "single"
    team: ClassVar[bool] = False

    def next(self, state: State) -> Moves:
        node = state.get(KEY)
        if node is None:
            request = state.request
            call = Call(request.messages, answers=True, final=True, tools=True)
            return (Act(KEY, "route", Route(request.ask), lambda node: call),)
        if not node.over:
            return ()
        return End(self.answer(state), "answered" if node.status == "done" else "no answer")

    def answer(self, state: State) -> str | None:
        node = state.get(KEY)
        return KEY if node is not None and node.status == "done" else None


class SingleOfTeam(Single):
    """`single` under a root of its own: as a pattern that was named or chosen, with its limits and its one child."""

    team: ClassVar[bool] = True
