"""Instructions by MIPROv2 (Opsahl-Ong et al., arXiv 2406.11695), beside GEPA: a language model proposes, TPE chooses.

DSPy's optimiser over `RouterProgram`, demonstrations off. Both its language models are ours, so every call is counted
and paid like any other. Its winner joins the finals as one more candidate. Imports dspy (and optuna) when called.
"""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import dspy

from harness.optimise.budget import BudgetSpent
from harness.optimise.calls import CountedLm
from harness.optimise.candidate import INSTRUCTIONS, Candidate
from harness.optimise.guard import Guard
from harness.optimise.program import RouterProgram
from harness.optimise.rows import Objective, Rows
from harness.routing.base import Ask
from harness.routing.completion import content_of
from harness.routing.options import options
from harness.routing.parse import parse_pick
from pointsman.errors import UserError
from pointsman.pool import Worker

ROWS, CANDIDATES, TRIALS = 24, 4, 6
_MAX_TOKENS = 1_200


@dataclass(frozen=True)
class Models:
    """The router LLM that is optimised for and the model that proposes, each a counted function with its model id."""

    router: CountedLm
    router_model: str
    proposer: CountedLm
    proposer_model: str


def mipro_instructions(
    start: Candidate,
    rows: Rows,
    workers: Sequence[Worker],
    objective: Objective,
    models: Models,
    guard: Guard,
    runner: asyncio.Runner,
    seed: int,
) -> Candidate | None:
    """The start with MIPROv2's instructions; None where they are its own, break a rule, or the budget ended first."""
    _require_optuna()
    part = rows.take(range(min(ROWS, len(rows))))
    worth = part.utilities(objective)
    examples = [_example(start, row.id, row.ask, workers, index) for index, row in enumerate(part.rows)]

    def metric(example: Any, prediction: Any, trace: Any = None) -> float:
        pick = parse_pick(f"[[ ## option ## ]]\n{prediction.option}", example.names)
        return 0.0 if pick.worker is None else float(worth[example.row, rows.workers.index(pick.worker)])

    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)  # its key ignores addresses and keys
    router = _OurLm(models.router, models.router_model, runner, 64)
    proposer = _OurLm(models.proposer, models.proposer_model, runner, _MAX_TOKENS)
    optimiser = dspy.MIPROv2(
        metric=metric, prompt_model=proposer, task_model=router, auto=None, num_candidates=CANDIDATES,
        max_bootstrapped_demos=0, max_labeled_demos=0, num_threads=1, max_errors=1_000_000, seed=seed,
    )  # fmt: skip
    try:
        with dspy.context(lm=router, adapter=dspy.ChatAdapter()), _quiet():
            program = optimiser.compile(
                RouterProgram("option", start.instructions), trainset=examples, valset=examples,
                num_trials=TRIALS, minibatch=False, requires_permission_to_run=False,
            )  # fmt: skip
    except BudgetSpent:
        return None
    text = str(program.route.signature.instructions).strip()
    if text == start.instructions or guard.instruction_faults(text):
        return None
    return start.with_components({INSTRUCTIONS: text}, "MIPROv2 instructions")


def _example(start: Candidate, identity: str, ask: Ask, workers: Sequence[Worker], row: int) -> Any:
    names = options(tuple(workers), crc32(identity.encode()))
    cards = {letter: start.cards[name] for letter, name in names.items()}
    return dspy.Example(ask=ask, cards=cards, names=names, row=row).with_inputs("ask", "cards")


class _OurLm(dspy.BaseLM):  # type: ignore[misc]
    """DSPy's idea of a language model over ours."""

    def __init__(self, lm: CountedLm, model: str, runner: asyncio.Runner, max_tokens: int) -> None:
        super().__init__(model=model, temperature=0.0, max_tokens=max_tokens, cache=False)
        self._lm, self._runner = lm, runner

    def forward(self, prompt: str | None = None, messages: list[dict[str, Any]] | None = None, **settings: Any) -> Any:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": messages or [{"role": "user", "content": prompt or ""}],
            "temperature": settings.get("temperature", self.kwargs["temperature"]),
            "max_tokens": settings.get("max_tokens") or self.kwargs["max_tokens"],
        }
        return _completion(self._runner.run(self._lm(body)), self.model)


def _completion(reply: Mapping[str, Any], model: str) -> Any:
    message = SimpleNamespace(content=content_of(reply) or "", tool_calls=None, reasoning_content=None)
    choice = SimpleNamespace(message=message, finish_reason="stop", logprobs=None)
    return SimpleNamespace(choices=[choice], usage={}, model=model)


@contextmanager
def _quiet() -> Iterator[None]:
    """DSPy and optuna tell their progress through logging; the report tells ours."""
    loggers = [logging.getLogger(name) for name in ("dspy", "optuna")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # `forward` serves throughout dspy 3.4, which is pinned
            yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _require_optuna() -> None:
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise UserError("MIPROv2 needs optuna: pip install 'pointsman[optimize]'") from None
