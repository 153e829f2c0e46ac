"""`vote`: several answers to one request at the same time; the majority's, or a judge's choice, goes to the client.

Parallelization by voting ("Building effective agents", Anthropic, December 2024); with one worker `same` it is
self-consistency (arXiv 2203.11171). The answers stand under one decision each, below draws of their own where the
router chooses the workers; the vote's decision says which said the same. So the log holds side by side what several
workers make of one request. Left out: scores for the single answers, for agreeing is not being right.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import ClassVar, Literal

from harness.engine.acts import Act, Call, End, Moves, Named, Pick, Policy, Reading, Route
from harness.engine.context import passed_on, remembered, with_blocks
from harness.engine.patterns.ballots import Ballots
from harness.engine.request import Message, seed_of
from harness.engine.state import Node, State
from harness.routing.parse import parse_pick, visible_text
from pointsman.words import MemoryKind, Pattern

Method = Literal["majority", "judge"]
JUDGE = """\
You are the judge of several answers to the request. They stand above by letter. Check them by your own work, and \
start your reply with the letter of the best one, alone on its line. Then say why."""


@dataclass(frozen=True)
class VoteSettings:
    """`n` answers by `workers` in turn; empty: by workers that the router draws, or by one of them `same` each time.

    `judge` None: the router chooses one, where the method is `judge`.
    """

    n: int = 3
    workers: tuple[str, ...] = ()
    same: bool = False
    method: Method = "majority"
    judge: str | None = None


class Vote(Policy):
    kind: ClassVar[Pattern] = "vote"
    recalls: ClassVar[tuple[MemoryKind, ...]] = ("tool",)

    def __init__(self, settings: VoteSettings | None = None, name: str | None = None) -> None:
        super().__init__(name)
        self.settings = settings or VoteSettings()

    def next(self, state: State) -> Moves:
        draws = self._of(state, "draw")
        wanted = 0 if self.settings.workers else 1 if self.settings.same else self.settings.n
        if draws and draws[-1].status == "failed":
            return End(self.answer(state), "no worker may be chosen")
        if any(not node.over for node in draws):
            return ()
        if len(draws) < wanted:
            return (self._draw(state, draws),)
        answers = self._of(state, "answer")
        if not answers:
            return self._answers(state, [node.chosen or "" for node in draws])
        if any(not node.over for node in answers):
            return ()
        return self._counted(state, Ballots.of(answers))

    def answer(self, state: State) -> str | None:
        """The vote's choice, else the majority so far."""
        vote = state.get("vote")
        if vote is not None and vote.status == "done":
            return str(vote.data["winner"])
        winner = Ballots.of(self._of(state, "answer")).winner
        return winner.key if winner is not None else None

    def read(self, state: State, node: Node) -> Reading | None:
        if node.key == "judge":
            first = (visible_text(node.text).splitlines() or [""])[0]
            chosen = parse_pick(first, node.options).worker
            return Reading("unparseable" if chosen is None else None, data={"winner": chosen})
        if node.key == "vote":
            winner = self._winner(state, Ballots.of(self._of(state, "answer")))
            return Reading(data={"winner": winner.key if winner else None})
        return None

    def _draw(self, state: State, draws: Sequence[Node]) -> Act:
        avoid = {node.chosen or "": "drawn already" for node in draws}
        return Act(f"draw:{len(draws)}", "route", Route(state.request.ask, avoid=avoid), turn=len(draws))

    def _answers(self, state: State, drawn: Sequence[str]) -> list[Act]:
        """All at once."""
        names = self.settings.workers or tuple(drawn)
        messages = with_blocks(state.request.messages, remembered(state.recalled))
        acts = []
        for number in range(self.settings.n):
            worker = names[number % len(names)]
            parent = None if self.settings.workers else f"draw:{number % len(drawn)}"
            call = self._call(state, messages, number, again=worker in names[:number] or number >= len(names))
            title = f"answer {number + 1} of {self.settings.n}"
            acts.append(Act(f"answer:{number}", "route", Named(worker), call, parent, number, title=title))
        return acts

    def _call(self, state: State, messages: list[Message], number: int, *, again: bool) -> Callable[[Node], Call]:
        """A worker that is asked again gets another seed, or it might say the same."""
        fields = {"seed": seed_of(state.request.seed, f"answer:{number}") % 2**31} if again else {}
        return lambda node: Call(messages, answers=True, tools=True, alone=True, fields=fields)

    def _counted(self, state: State, ballots: Ballots) -> Moves:
        judge, vote = state.get("judge"), state.get("vote")
        if not ballots.groups:
            return End(self.answer(state), "no answer")
        if self.settings.method == "judge" and judge is None and len(ballots.groups) > 1:
            return (self._judge(state, ballots),)
        if judge is not None and not judge.over:
            return ()
        if vote is None:
            return (self._vote(state, ballots),)
        if not vote.over:
            return ()
        largest = max(map(len, ballots.groups))
        return End(self.answer(state), "judged" if self._judged(state) else f"{largest} of {self.settings.n} agree")

    def _judge(self, state: State, ballots: Ballots) -> Act:
        """One reply of each group, by letter in an order of the seed's."""
        shown = [group[0] for group in ballots.groups]
        random.Random(seed_of(state.request.seed, "letters")).shuffle(shown)
        letters = dict(zip(ascii_uppercase, shown, strict=False))

        def call(node: Node) -> Call:
            node.options = {letter: reply.key for letter, reply in letters.items()}
            return Call(judge_messages(state.request.messages, {at: one.said for at, one in letters.items()}))

        named = self.settings.judge
        choose = Named(named, "rule") if named else Route(state.request.ask)
        return Act("judge", "role", choose, call, title="judging")

    def _vote(self, state: State, ballots: Ballots) -> Act:
        answers = self._of(state, "answer")
        winner = self._winner(state, ballots)
        assert winner is not None, "there is a group"
        plan = {
            "method": "judge" if self._judged(state) else "majority",
            "answers": [
                {"decision": node.id, "worker": node.answered_by, "group": ballots.group_of(node.key)}
                for node in answers
            ],
            "winner": winner.id,
        }
        pick = Pick({winner.answered_by or winner.key: 1.0})
        return Act("vote", "vote", pick, None, "judge" if state.get("judge") else None, self.settings.n, plan=plan)

    def _winner(self, state: State, ballots: Ballots) -> Node | None:
        judged = self._judged(state)
        return state[judged] if judged else ballots.winner

    def _judged(self, state: State) -> str | None:
        judge = state.get("judge")
        return judge.data.get("winner") if judge is not None and judge.status == "done" else None

    def _of(self, state: State, word: str) -> list[Node]:
        """In the order in which they were asked for, whatever came first."""
        found = [node for node in state.nodes.values() if node.key.startswith(f"{word}:")]
        return sorted(found, key=lambda node: node.turn)


def judge_messages(messages: list[Message], answers: Mapping[str, str]) -> list[Message]:
    """What a judge is sent."""
    shown = [(f"Answer {letter}", passed_on(text)) for letter, text in answers.items()]
    return with_blocks(messages, [*shown, ("Your role", JUDGE)])
