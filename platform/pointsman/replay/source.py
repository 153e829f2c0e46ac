"""A recorded data set in a folder: queries, and what each model scored on them.

    queries.parquet or .jsonl    id, text; optional task, split, asked_at; any other column is kept
    outcomes.parquet or .jsonl   query_id, model, score in [0, 1]; optional response, input_tokens,
                                 output_tokens, cost (USD), latency_ms, repeat
    models.json (optional)       see `models`

Rows are read in batches. What is held while reading: about 200 bytes per outcome, to count repeats.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from pointsman.config.load import RESERVED_NAMES
from pointsman.errors import UserError
from pointsman.replay.cells import Cells
from pointsman.replay.rows import Table

QUERY_COLUMNS = frozenset({"id", "text", "task", "split", "asked_at"})
MAX_REPEATS = 1 << 20
_WORKER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}")


@dataclass(frozen=True)
class Query:
    """One recorded request. `extra` holds the columns that have no meaning here (metric, choices, …)."""

    id: str
    text: str
    task: str | None = None
    split: str | None = None
    asked_at: datetime | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RecordedOutcome:
    """What one model did with one query. `repeat` counts the rows of one (query, model) from 0."""

    query_id: str
    model: str
    score: float
    response: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: Decimal | None = None
    latency_ms: float | None = None
    repeat: int = 0


class Folder:
    """A data set's folder. Each call of `queries` and `outcomes` reads its file anew, from the start."""

    def __init__(self, path: Path) -> None:
        if not path.is_dir():
            raise UserError(f"{path}: no such folder")
        self.path = path
        self.query_table = Table.find(path, "queries", ("id", "text"))
        self.outcome_table = Table.find(path, "outcomes", ("query_id", "model", "score"))

    def queries(self) -> Iterator[Query]:
        """Every query; an id that comes twice is refused."""
        seen: dict[str, int] = {}
        for number, values in self.query_table.rows():
            cells = Cells(self.query_table.file, number, values)
            query = _query(cells)
            if query.id in seen:
                raise cells.fault("id", f"an id of its own (row {seen[query.id]} has this one)")
            seen[query.id] = number
            yield query

    def outcomes(self, queries: Mapping[str, int]) -> Iterator[RecordedOutcome]:
        """Every outcome; `queries` gives each known query id a number of its own."""
        repeats = Repeats()
        names: dict[str, int] = {}
        for number, values in self.outcome_table.rows():
            cells = Cells(self.outcome_table.file, number, values)
            query_id, model = cells.identity("query_id"), cells.text("model")
            if query_id not in queries:
                raise cells.fault("query_id", f"an id that stands in {self.query_table.file.name}")
            if model not in names:
                _check_name(cells, model)
                names[model] = len(names)
            given = cells.optional_count("repeat")
            repeat = repeats.take(queries[query_id] << 20 | names[model], given)
            if repeat is None:
                expected = "a number that no other row of this query and model has"
                raise cells.fault("repeat", expected)
            yield _outcome(cells, query_id, model, repeat)


class Repeats:
    """Which repeats of which cells were seen. A row that gives none gets the next."""

    def __init__(self) -> None:
        self._next: dict[int, int] = {}
        self._taken: set[int] = set()

    def take(self, cell: int, given: int | None) -> int | None:
        """The row's repeat, None where another row has it."""
        free = self._next.get(cell, 0)
        repeat = free if given is None else given
        slot = cell * MAX_REPEATS + repeat
        if repeat >= MAX_REPEATS or slot in self._taken:
            return None
        self._taken.add(slot)
        self._next[cell] = max(free, repeat + 1)
        return repeat


def _query(cells: Cells) -> Query:
    extra = {
        column: value for column, value in cells.values.items() if column not in QUERY_COLUMNS and value is not None
    }
    return Query(
        id=cells.identity("id"),
        text=cells.text("text"),
        task=cells.optional_text("task"),
        split=cells.optional_text("split"),
        asked_at=cells.optional_moment("asked_at"),
        extra=extra,
    )


def _outcome(cells: Cells, query_id: str, model: str, repeat: int) -> RecordedOutcome:
    return RecordedOutcome(
        query_id=query_id,
        model=model,
        score=cells.score("score"),
        response=cells.optional_text("response"),
        input_tokens=cells.optional_count("input_tokens"),
        output_tokens=cells.optional_count("output_tokens"),
        cost=cells.optional_cost("cost"),
        latency_ms=cells.optional_number("latency_ms"),
        repeat=repeat,
    )


def _check_name(cells: Cells, model: str) -> None:
    if expected := name_expected(model):
        raise cells.fault("model", expected)


def name_expected(model: str) -> str | None:
    """What was expected of a worker's name that cannot be one, None where it can."""
    if not _WORKER_NAME.fullmatch(model):
        return "a worker's name: letters, digits and ._:/- (100 at most)"
    if model in RESERVED_NAMES or model.startswith(("pointsman-", "pointsman@")):
        return "a name that is not reserved"
    return None
