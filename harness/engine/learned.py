"""A learned conductor in front of the prompted one: a small model, trained to plan, that any OpenAI-compatible server
serves.

`shaped` turns the prompted conductor's prompt into what such a model was trained on; training and serving both call it,
so the two cannot differ. `LearnedDeciders` asks the learned conductor, reads its plan with the one parser, and where
that gives none, or the server does not answer, has the prompted conductor write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Literal

from harness.engine.acts import Roles
from harness.engine.deciders import Choice, Deciders, Orchestrator, Written, written_by
from harness.engine.plan.grammar import MAX_STEPS
from harness.engine.plan.parse import parse
from harness.engine.request import Message
from harness.routing.base import Ask, RouterUsage
from harness.routing.eligibility import Eligibility
from pointsman.hashing import content_hash
from pointsman.words import DecisionKind

Form = Literal["full", "short"]
"""`full`: the prompt as the prompted conductor gets it. `short`: its data alone, for a model trained on that."""

SHORT_VERSION = 1
_SECTION = re.compile(r"^\[\[ ## (\w+) ## \]\]$\n?", re.MULTILINE)
_SHOWN = re.compile(r"^([A-Za-z]) .* \1$", re.MULTILINE)
_AGAIN = ("previous", "problems")


def shaped(messages: list[Message], form: Form) -> list[Message]:
    """The prompt in `form`. In the short form a worker's letter stands before and behind its card."""
    if form == "full":
        return messages
    held = _sections(str(messages[-1]["content"]))
    lines = [f"request {held.get('request', '')}"]
    if held.get("context", '""') != '""':
        lines.append(f"context {held['context']}")
    lines += [f"{one['option']} {_bare(one['description'])} {one['option']}" for one in _workers(held)]
    lines += [f"{name} {held[name]}" for name in _AGAIN if name in held]
    return [{"role": "user", "content": "\n".join(lines)}]


def letters_of(messages: list[Message]) -> str:
    """The option letters that a prompt of either form offers; none where it is no conductor's."""
    prompt = str(messages[-1]["content"])
    if _SECTION.search(prompt):
        return "".join(one["option"] for one in _workers(_sections(prompt)))
    return "".join(_SHOWN.findall(prompt))


def context_of(messages: list[Message]) -> str:
    """What surrounded the request, as a conductor's full prompt quotes it."""
    said = json.loads(_sections(str(messages[-1]["content"])).get("context", '""'))
    return str(said)


def form_hash(form: Form, template_hash: str) -> str:
    """What a checkpoint was trained on: the wording of the full prompt, or the version of the short form."""
    return content_hash(["short", SHORT_VERSION] if form == "short" else ["full", template_hash])


class LearnedDeciders:
    """`inner` draws as ever and writes where `learned` cannot. What both took is counted."""

    def __init__(
        self, inner: Deciders, learned: Orchestrator, form: Form = "short", max_steps: int = MAX_STEPS
    ) -> None:
        self._inner = inner
        self._form: Form = form
        self._max_steps = max_steps
        self._learned = learned
        self.fallbacks = 0

    async def decide(
        self, kind: DecisionKind, ask: Ask, eligible: Eligibility, seed: int, roles: Roles | None = None
    ) -> Choice:
        return await self._inner.decide(kind, ask, eligible, seed, roles)

    async def write(self, messages: list[Message], max_tokens: int, seed: int) -> Written:
        said = await written_by(self._learned, shaped(messages, self._form), max_tokens)
        if said.fault is None and readable(said.text, messages, self._max_steps):
            return said
        self.fallbacks += 1
        instead = await self._inner.write(messages, max_tokens, seed)
        usage = _sum(said.usage, instead.usage)
        return Written(instead.text, usage, instead.model, said.milliseconds + instead.milliseconds, instead.fault)


def readable(text: str | None, messages: list[Message], max_steps: int = MAX_STEPS) -> bool:
    """Whether a conductor's text is a plan for the workers that its prompt offered."""
    held = _sections(str(messages[-1]["content"]))
    letters = {one["option"]: one["option"] for one in _workers(held)}
    return parse(text, letters, max_steps=max_steps, empty="previous" in held).plan is not None


def _sections(prompt: str) -> dict[str, str]:
    """What stands under each heading of a conductor's prompt, one value each; what is asked for is left out."""
    heads = list(_SECTION.finditer(prompt))
    ends = [*(head.start() for head in heads[1:]), len(prompt)]
    held = {head[1]: prompt[head.end() : end].strip() for head, end in zip(heads, ends, strict=True)}
    last = heads[-1][1] if heads else None
    return {name: value.split("\n\n")[0] if name == last else value for name, value in held.items()}


def _workers(held: Mapping[str, str]) -> list[dict[str, str]]:
    workers: list[dict[str, str]] = json.loads(held.get("workers", "[]"))
    return workers


def _bare(card: str) -> str:
    """A card on one line; without quotes where it has nothing to be escaped."""
    said = json.dumps(card, ensure_ascii=False)
    return card if said == f'"{card}"' else said


def _sum(one: RouterUsage, other: RouterUsage) -> RouterUsage:
    costs = [usage.cost for usage in (one, other) if usage.cost is not None]
    return RouterUsage(
        (one.input_tokens or 0) + (other.input_tokens or 0),
        (one.output_tokens or 0) + (other.output_tokens or 0),
        sum(costs, Decimal(0)) if costs else None,
    )
