"""One export: what is asked for, read in pages, redacted, written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from pointsman.outlet.reading import Selection, columns_of, pages
from pointsman.outlet.subjects import TEXTS, SubjectName, subject
from pointsman.outlet.writing import Row, Written, write_rows
from pointsman.redaction import Redactor

_HOLD_TEXT = TEXTS | {"request_hints", "request_tags", "request_task", "rater", "value"}


def export(
    engine: Engine,
    name: SubjectName,
    selection: Selection,
    file: Path,
    *,
    redact: Sequence[str] = (),
    replace: bool = False,
    on_rows: Callable[[int], None] = lambda rows: None,
) -> Written:
    """Writes the rows of a subject to `file`. `redact` are patterns blacked out in every column that holds text."""
    wanted = subject(name)
    redactor = Redactor(redact)

    def redacted() -> Iterator[list[Row]]:
        done = 0
        for page in pages(engine, wanted, selection):
            yield [_redacted(row, redactor) for row in page] if redact else page
            done += len(page)
            on_rows(done)

    return write_rows(file, columns_of(wanted, selection), redacted(), replace=replace)


def _redacted(row: Row, redactor: Redactor) -> dict[str, Any]:
    return {name: redactor.value(value) if name in _HOLD_TEXT else value for name, value in row.items()}
