"""The first reading of a file: which workers it names, what it lacks, which lines cannot be taken. Nothing is written.

Of a request log nothing is held but counts; of a score table about 250 bytes per question.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pointsman.errors import UserError
from pointsman.intake.lines import Fault
from pointsman.intake.reading import LeftOut, Source
from pointsman.intake.record import Record
from pointsman.intake.rejects import Rejects
from pointsman.pool import Pool, Worker
from pointsman.replay.identities import UNDATED
from pointsman.replay.models import replay_pool
from pointsman.replay.source import Repeats

EVERY = 5_000
OnLines = Callable[[str, int], None]
"""Called with the phase and how many lines it has read."""

LACKING: Mapping[str, str] = {
    "text": "the request's text",
    "asked_at": "when it was asked",
    "score": "a score",
    "cost": "what it cost",
    "tokens": "token counts",
    "latency_ms": "how long it took",
    "completion": "the answer's text",
}


@dataclass(slots=True)
class Question:
    """One question of a score table: when it was asked, and which of the `models` answered it, as bits."""

    moment: datetime
    answered: int = 0
    number: int = 0


@dataclass
class Survey:
    """What a file holds. `lacking` counts records by what they do not have, `left_out` rows by their type."""

    source: Source
    lines: int = 0
    records: int = 0
    models: dict[str, int] = field(default_factory=dict)
    provider_models: dict[str, str] = field(default_factory=dict)
    answers: Counter[str] = field(default_factory=Counter)
    lacking: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    questions: dict[str, Question] = field(default_factory=dict)
    first: datetime | None = None
    last: datetime | None = None

    def pool(self, dataset: str, configured: Mapping[str, Worker]) -> Pool:
        """The models as workers: a configured one of that name lends card, model and price, never its address."""
        pool = replay_pool(self.models, {}, dataset)
        made = []
        for worker in pool.workers:
            known = configured.get(worker.name)
            model = self.provider_models.get(worker.name, worker.model)
            if known is None:
                made.append(Worker(worker.name, worker.card, model, ()))
            else:
                made.append(Worker(known.name, known.card, known.model, (), known.price, known.context_window))
        return Pool(tuple(made))

    def take(self, record: Record) -> None:
        self.records += 1
        self.models.setdefault(record.model, len(self.models))
        if record.provider_model is not None:
            self.provider_models.setdefault(record.model, record.provider_model)
        self.answers[record.model] += 1
        for name in LACKING:
            self.lacking[name] += _lacks(record, name)
        if record.asked_at is not None:
            self.first = min(self.first or record.asked_at, record.asked_at)
            self.last = max(self.last or record.asked_at, record.asked_at)

    def answer(self, record: Record) -> None:
        question = self.questions.get(record.query)
        if question is None:
            question = Question(record.asked_at or UNDATED, number=len(self.questions))
            self.questions[record.query] = question
        question.answered |= 1 << self.models[record.model]


def survey(source: Source, rejects_file: Path, on_lines: OnLines = lambda phase, lines: None) -> tuple[Survey, Rejects]:
    """Reads `source` through; every line that cannot be taken is in the file of rejects when it returns."""
    made, repeats = Survey(source), Repeats()
    with Rejects(rejects_file) as rejects:
        for entry in source.entries():
            made.lines += 1
            if made.lines % EVERY == 0:
                on_lines("reading", made.lines)
            if isinstance(entry, Fault):
                rejects.add(entry)
            elif isinstance(entry, LeftOut):
                made.left_out[entry.type] += 1
            elif source.is_table and (record := _doubled(made, repeats, entry.records)) is not None:
                reason = f"repeat: another row has repeat {record.repeat} of this question and {record.model}"
                rejects.add(Fault(entry.number, reason, {"query": record.query, "model": record.model}))
            else:
                for record in entry.records:
                    made.take(record)
    if not made.records:
        said = f"; the first: line {rejects.first[0].number}: {rejects.first[0].reason}" if rejects.first else ""
        others = f", {sum(made.left_out.values())} rows are of another type" if made.left_out else ""
        raise UserError(f"{source.file}: no row could be taken: {rejects.count} were rejected{others}{said}")
    return made, rejects


def repeat_of(made: Survey, repeats: Repeats, record: Record) -> int | None:
    """Which of several answers of one model to one question a record is; None where another one has that number."""
    return repeats.take(made.questions[record.query].number << 20 | made.models[record.model], record.repeat)


def _doubled(made: Survey, repeats: Repeats, records: Sequence[Record]) -> Record | None:
    """The record of a line whose repeat is taken; else all are noted as answers."""
    for record in records:
        made.models.setdefault(record.model, len(made.models))
        made.answer(record)
        if repeat_of(made, repeats, record) is None:
            return record
    return None


def _lacks(record: Record, name: str) -> bool:
    if name == "tokens":
        return record.input_tokens is None or record.output_tokens is None
    if name == "completion":
        return record.completion is None and record.tool_calls is None and record.status == "ok"
    return getattr(record, name) is None
