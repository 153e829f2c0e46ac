"""The first reading of a data set: every row is checked and counted before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from pointsman.errors import UserError
from pointsman.pool import Pool
from pointsman.replay.identities import UNDATED
from pointsman.replay.models import cost_of, read_models, replay_pool
from pointsman.replay.source import Folder
from pointsman.replay.tally import Numbers, Tally

Phase = Literal["checking", "outcomes", "queries"]


@dataclass(frozen=True)
class Progress:
    """How far an import is: `done` rows of `total` (None: not known) in one phase."""

    phase: Phase
    done: int
    total: int | None


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True)
class Survey:
    """A checked data set: its pool, its numbers, and when each query was asked."""

    folder: Folder
    pool: Pool
    numbers: Numbers
    tally: Tally
    moments: dict[str, datetime]

    def eligible(self, query_id: str) -> dict[str, str | None]:
        """Each worker of the data set: null where its outcome is recorded, else why it is not there."""
        answered = self.tally.answered(query_id)
        return {worker.name: None if worker.name in answered else "no recorded outcome" for worker in self.pool.workers}


def survey_folder(path: Path, dataset: str, *, on_progress: OnProgress, every: int = 2000) -> Survey:
    """Reads both tables through; raises `UserError` naming the first fault."""
    folder = Folder(path)
    entries = read_models(path)
    moments = {query.id: query.asked_at or UNDATED for query in folder.queries()}
    if not moments:
        raise UserError(f"{folder.query_table.file}: holds no queries")
    numbers_of = {query_id: number for number, query_id in enumerate(moments)}
    prices = {worker.name: worker.price for worker in replay_pool(entries, entries, dataset).workers}
    tally = Tally()
    for query_id in moments:
        tally.add_query(query_id)
    total = folder.outcome_table.count()
    for done, outcome in enumerate(folder.outcomes(numbers_of), 1):
        cost = cost_of(outcome, prices.get(outcome.model))
        tally.add(outcome.query_id, outcome.model, outcome.score, cost)
        if done % every == 0:
            on_progress(Progress("checking", done, total))
    numbers = tally.numbers()
    if not numbers.outcomes:
        raise UserError(f"{folder.outcome_table.file}: holds no outcomes")
    on_progress(Progress("checking", numbers.outcomes, numbers.outcomes))
    return Survey(folder, replay_pool(tally.workers(), entries, dataset), numbers, tally, moments)
