"""A file in one of the formats as entries: the records of a line, a line left out, or a fault."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pointsman.errors import UserError
from pointsman.intake.lines import Fault, Line, read_lines
from pointsman.intake.logs import NotAnAnswer, record_of
from pointsman.intake.maps import ColumnMap
from pointsman.intake.record import Record
from pointsman.intake.score_tables import Shape, records_of, shape_of
from pointsman.intake.scores import Scores
from pointsman.intake.values import Unreadable
from pointsman.replay.source import name_expected


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A row that is no model's answer: of another type."""

    number: int
    type: str


@dataclass(frozen=True, slots=True)
class Read:
    """The records of one line, one or (of a wide table) several."""

    number: int
    records: Sequence[Record]


Entry = Read | LeftOut | Fault


@dataclass(frozen=True)
class Source:
    """A file, how to read it, and the scores that another file has of it. Each reading starts from its start."""

    file: Path
    form: str
    columns: ColumnMap
    scores: Scores | None = None

    @property
    def is_table(self) -> bool:
        """Whether it is a score table: one question has many answers."""
        return self.form == "scores"

    def entries(self) -> Iterator[Entry]:
        shape: Shape | None = None
        for line in read_lines(self.file):
            if isinstance(line, Fault):
                yield line
                continue
            try:
                if self.is_table and shape is None:
                    shape = self._shape(line)
                yield Read(line.number, self._records(line, shape))
            except NotAnAnswer as error:
                yield LeftOut(line.number, str(error))
            except Unreadable as error:
                yield Fault(line.number, str(error), line.raw)

    def _shape(self, line: Line) -> Shape:
        try:
            return shape_of(line.values, self.columns)
        except Unreadable as error:
            raise UserError(f"{self.file}: {error}") from None

    def _records(self, line: Line, shape: Shape | None) -> list[Record]:
        if shape is not None:
            records = list(records_of(line.values, self.columns, shape))
        else:
            record = record_of(line.values, self.columns)
            if record.score is None and self.scores is not None:
                record = replace(record, score=self.scores.of(record))
            records = [record]
        for record in records:
            if expected := name_expected(record.model):
                raise Unreadable(f"model: expected {expected}, got {record.model[:60]!r}")
        return records
