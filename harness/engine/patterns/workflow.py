"""`workflow`: a plan of steps, each a worker with a subtask and the earlier outputs it may see.

Conductor (arXiv 2512.04388, §3) and Fugu-Ultra (arXiv 2606.21228, §3.2.2): a conductor writes the plan (`plan`), steps
that do not need each other run at the same time, the last output that is not empty is the answer, and the conductor
may look at it and plan once more, to `rounds` in all. A plan that cannot be carried out goes back to the conductor with
what is wrong (`repairs` times), then one worker answers. A fixed plan comes from the configuration: with gates it is
prompt chaining, with steps that see nothing it is sectioning.

**Isolation.** A step's worker sees the request, its subtask, what its access list names, and what tools gave in the
episode's earlier workflows. Nothing else: not the plan, not other steps' outputs, not another step's tool calls.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from harness.engine.acts import Act, Call, End, Moves, Named, Pick, Policy, Reading, Route, Write
from harness.engine.conductor import plan_prompt
from harness.engine.context import Block, passed_on, remembered, with_blocks
from harness.engine.patterns.rounds import Round, answer_of, previous_of, rounds_of
from harness.engine.plan.grammar import MAX_STEPS, Plan, Step
from harness.engine.plan.parse import parse
from harness.engine.request import Message
from harness.engine.state import Node, State
from harness.routing.base import Ask
from pointsman.words import DecisionKind, MemoryKind, Pattern

STEP = """\
You do one part of the request above, as one of a team. Do only what stands below under "Your subtask"; others do the \
rest."""
LAST_STEP = """\
You do the last part of the request above, as one of a team. Do what stands below under "Your subtask"; your reply is \
the answer to the request and goes to the person as it is."""
SINGLE = "single"
"""The key of the one worker that answers where no plan could be carried out."""


@dataclass(frozen=True)
class WorkflowSettings:
    """`fixed` is a plan from the configuration; without it a conductor plans. `rounds` is the depth of recursion."""

    max_steps: int = MAX_STEPS
    rounds: int = 1
    repairs: int = 1
    fixed: Plan | None = None


class Workflow(Policy):
    kind: ClassVar[Pattern] = "workflow"
    recalls: ClassVar[tuple[MemoryKind, ...]] = ("tool",)

    def __init__(self, settings: WorkflowSettings | None = None, name: str | None = None) -> None:
        super().__init__(name)
        self.settings = settings or WorkflowSettings()

    def next(self, state: State) -> Moves:
        single = state.get(SINGLE)
        if single is not None:
            return End(self.answer(state), "single: no plan could be carried out") if single.over else ()
        rounds = rounds_of(state)
        if not rounds:
            return (self._first_plan(state),)
        now = rounds[-1]
        if now.plan is None:
            return self._without_plan(state, now)
        if not now.plan.steps:
            return End(self.answer(state), "returned")
        return self._steps(state, now)

    def answer(self, state: State) -> str | None:
        single = state.get(SINGLE)
        return SINGLE if single is not None and single.said else answer_of(rounds_of(state))

    def read(self, state: State, node: Node) -> Reading | None:
        """The plan in a conductor's reply; whether a step's output passes its gate."""
        if not node.key.startswith("plan:"):
            return None
        if self.settings.fixed is not None:
            return Reading("fixed", data={"plan": self.settings.fixed.as_json()})
        parsed = parse(node.text, node.options, max_steps=self.settings.max_steps, empty=node.turn > 0)
        stops = node.turn > 0 and parsed.plan is not None and not parsed.plan.steps
        plan = parsed.plan.as_json() if parsed.plan is not None else None
        return Reading(
            reason="; ".join(parsed.problems) or None,
            chosen=None if node.turn == 0 or parsed.plan is None else "stop" if stops else "plan",
            data={"plan": plan, "problems": list(parsed.problems)},
            parse_status=parsed.status,
            plan=plan,
        )

    def _first_plan(self, state: State) -> Act:
        if (fixed := self.settings.fixed) is not None:
            title = f"a plan of {len(fixed.steps)} steps"
            return Act("plan:0:0", "delegate", Pick({self.name: 1.0}, "plan"), title=title, plan=fixed.as_json())
        return self._write(state, 0, 0, title="planning")

    def _write(self, state: State, round_: int, attempt: int, *, title: str, problems: Sequence[str] = ()) -> Act:
        rounds = rounds_of(state)
        previous = previous_of(rounds[:round_]) if round_ > 0 else None
        prompt = plan_prompt(state.request.ask, max_steps=self.settings.max_steps, previous=previous, problems=problems)
        kind: DecisionKind = "stop" if round_ > 0 else "delegate"
        return Act(f"plan:{round_}:{attempt}", kind, Write(prompt), turn=round_, title=title)

    def _without_plan(self, state: State, now: Round) -> Moves:
        """The conductor has not written one that may run: wait, have it mended, or do without."""
        if now.planning:
            return ()
        if not now.failed and now.attempts <= self.settings.repairs:
            problems = now.problems
            return (self._write(state, now.number, now.attempts, title="mending the plan", problems=problems),)
        if now.number > 0:
            return End(self.answer(state), "returned: no further plan could be carried out")
        call = Call(state.request.messages, answers=True, final=True, tools=True)
        title = "no plan could be carried out: one worker answers"
        return (Act(SINGLE, "route", Route(state.request.ask), lambda node: call, title=title),)

    def _steps(self, state: State, now: Round) -> Moves:
        plan = now.plan
        assert plan is not None
        acts: list[Act] = []
        for number in range(1, len(plan.steps) + 1):
            if number in now.steps:
                continue
            if all(now.passed(read) for read in plan.reads(number)):
                acts.append(self._step(state, now, plan, number))
        for number, node in now.steps.items():
            step = plan.steps[number - 1]
            if step.gate is not None and node.over and number not in now.gates:
                acts.append(self._gate(now, number, step.gate, node))
        if stopped := now.stopped:
            return End(self.answer(state), f"gate of step {stopped}")
        if acts or not now.over:
            return acts
        if now.number + 1 < self.settings.rounds and self.settings.fixed is None and self.answer(state):
            return (self._write(state, now.number + 1, 0, title="looking at the result"),)
        return End(self.answer(state), "planned" if self.answer(state) else "no output")

    def _step(self, state: State, now: Round, plan: Plan, number: int) -> Act:
        step, count = plan.steps[number - 1], len(plan.steps)
        last = number == count
        only_round = now.number + 1 >= self.settings.rounds or self.settings.fixed is not None
        messages = step_messages(state, rounds_of(state), number)
        call = Call(messages, answers=last, final=last and only_round and step.gate is None, tools=True)
        return Act(
            f"step:{now.number}:{number}",
            "route",
            Named(step.worker) if step.worker is not None else Route(_ask_for(state.request.ask, step)),
            lambda node: call,
            parent=now.key,
            turn=now.number,
            step=number,
            title=f"step {number} of {count}: {step.subtask[:120]}",
        )

    def _gate(self, now: Round, number: int, gate: str, node: Node) -> Act:
        """A program's look at an output: go on, or stop the chain here. Its result is a row of its own."""
        passes = re.search(gate, node.said, re.DOTALL) is not None
        key, parent = f"gate:{now.number}:{number}", f"step:{now.number}:{number}"
        pick = Pick({"go" if passes else "stop": 1.0})
        return Act(key, "stop", pick, parent=parent, turn=now.number, step=number)


def step_messages(state: State, rounds: Sequence[Round], number: int) -> list[Message]:
    """All that the worker of a step sees."""
    now = rounds[-1]
    assert now.plan is not None
    step, last = now.plan.steps[number - 1], number == len(now.plan.steps)
    blocks: list[Block] = [("Your part", LAST_STEP if last else STEP), *remembered(state.recalled)]
    if step.access == "all":
        for earlier in rounds[:-1]:
            blocks += _outputs(earlier, range(1, len(earlier.steps) + 1), f"round {earlier.number + 1}, ")
    blocks += _outputs(now, now.plan.reads(number), "")
    blocks.append(("Your subtask", step.subtask))
    return with_blocks(state.request.messages, blocks)


def _outputs(of: Round, numbers: Sequence[int] | range, where: str) -> list[Block]:
    """Subtask and output of each step."""
    assert of.plan is not None
    shown = []
    for number in numbers:
        if (node := of.steps.get(number)) is not None:
            told = f"(its subtask was: {of.plan.steps[number - 1].subtask})"
            shown.append((f"Result of {where}step {number}", f"{told}\n{passed_on(node.said) or '(nothing)'}"))
    return shown


def _ask_for(ask: Ask, step: Step) -> Ask:
    """What the router sees where a fixed plan leaves the worker to it: the subtask, with the request around it."""
    return Ask(step.subtask, f"{ask.text}\n{ask.context}".rstrip(), ask.tags, ask.images, ask.has_tools)
