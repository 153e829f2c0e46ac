"""A workflow's rounds, read off the nodes of its state: which plan each carried out, and how far it is."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.engine.context import passed_on
from harness.engine.plan.grammar import Plan, plan_of
from harness.engine.plan.render import render
from harness.engine.state import Node, State


@dataclass
class Round:
    """`key` is the node whose plan it carries out; `plan` None while there is none that may run."""

    number: int
    key: str = ""
    plan: Plan | None = None
    attempts: int = 0
    planning: bool = False
    failed: bool = False
    problems: tuple[str, ...] = ()
    steps: dict[int, Node] = field(default_factory=dict)
    gates: dict[int, Node] = field(default_factory=dict)

    def passed(self, number: int) -> bool:
        """Whether a step is over, and its gate, if it has one, lets the chain go on."""
        node = self.steps.get(number)
        if node is None or not node.over:
            return False
        assert self.plan is not None
        if self.plan.steps[number - 1].gate is None:
            return True
        gate = self.gates.get(number)
        return gate is not None and gate.over and gate.chosen == "go"

    @property
    def stopped(self) -> int | None:
        """The step whose gate ended the chain."""
        return next((number for number, gate in self.gates.items() if gate.over and gate.chosen == "stop"), None)

    @property
    def over(self) -> bool:
        return self.plan is not None and all(self.passed(number) for number in range(1, len(self.plan.steps) + 1))


def rounds_of(state: State) -> list[Round]:
    """All rounds so far, in order."""
    rounds: dict[int, Round] = {}
    for node in state.nodes.values():
        word, _, rest = node.key.partition(":")
        if word not in ("plan", "step", "gate"):
            continue
        number, _, place = rest.partition(":")
        now = rounds.setdefault(int(number), Round(int(number)))
        if word == "plan":
            _take_plan(now, node)
        elif word == "step":
            now.steps[int(place)] = node
        else:
            now.gates[int(place)] = node
    return [rounds[number] for number in sorted(rounds)]


def answer_of(rounds: list[Round]) -> str | None:
    """The key of the last step whose output is not empty, of the newest round that has one."""
    for now in reversed(rounds):
        for number in sorted(now.steps, reverse=True):
            if now.steps[number].said and _lets_through(now, number):
                return now.steps[number].key
    return None


def previous_of(rounds: list[Round]) -> str:
    """The newest round as the conductor is shown it: its plan, and the answer that came of it."""
    now = rounds[-1]
    key = answer_of(rounds)
    answer = next((node.said for each in rounds for node in each.steps.values() if node.key == key), "")
    return f"{render(now.plan or Plan(()), {})}\n\nAnswer:\n{passed_on(answer)}"


def _take_plan(now: Round, node: Node) -> None:
    now.attempts += 1
    now.planning = not node.over
    now.failed = node.status == "failed"
    now.problems = tuple(node.data.get("problems") or ())
    if node.status == "done" and node.data.get("plan") is not None:
        now.key, now.plan = node.key, plan_of(node.data["plan"])


def _lets_through(now: Round, number: int) -> bool:
    """A step that its gate refused is no answer, unless it is all there is."""
    gate = now.gates.get(number)
    return gate is None or gate.chosen != "stop" or len(now.steps) == 1
