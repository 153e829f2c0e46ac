"""One table of a recorded data set, row by row: Parquet (through pyarrow) or JSONL (through msgspec).

Rows are read in batches, never the whole file at once. What the columns mean is `source`'s business.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from pointsman.errors import UserError

Form = Literal["parquet", "jsonl"]
READ_BATCH = 1000


@dataclass(frozen=True)
class Table:
    """A file of rows. `required` columns are known to exist once `rows` has given its first row."""

    file: Path
    form: Form
    required: tuple[str, ...]

    @classmethod
    def find(cls, folder: Path, stem: str, required: tuple[str, ...]) -> Table:
        """`stem`.parquet or `stem`.jsonl in `folder`; neither or both is the user's mistake."""
        parquet, jsonl = folder / f"{stem}.parquet", folder / f"{stem}.jsonl"
        if parquet.exists() and jsonl.exists():
            raise UserError(f"{folder}: holds both {parquet.name} and {jsonl.name}; keep one of them")
        if parquet.exists():
            return cls(parquet, "parquet", required)
        if jsonl.exists():
            return cls(jsonl, "jsonl", required)
        raise UserError(f"{folder}: no {parquet.name} and no {jsonl.name}; one of them is needed")

    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Each row with its number, from 1 (a line's number in JSONL)."""
        return self._parquet_rows() if self.form == "parquet" else self._jsonl_rows()

    def count(self) -> int | None:
        """How many rows there are, where the file says so without being read."""
        return int(_parquet_file(self.file).metadata.num_rows) if self.form == "parquet" else None

    def _parquet_rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        parquet = _parquet_file(self.file)
        found = parquet.schema_arrow.names
        self._require(found, f"{self.file}")
        number = 0
        for batch in parquet.iter_batches(batch_size=READ_BATCH):
            for row in batch.to_pylist():
                number += 1
                yield number, row

    def _jsonl_rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        decoder = msgspec.json.Decoder(dict[str, Any])
        with self.file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    row = decoder.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    raise UserError(f"{self.file}: row {number}: expected one JSON object: {error}") from None
                self._require(row, f"{self.file}: row {number}")
                yield number, row

    def _require(self, found: Any, place: str) -> None:
        for column in self.required:
            if column not in found:
                raise UserError(f"{place}: no column {column!r}; found {', '.join(sorted(found)) or 'none'}")


def _parquet_file(file: Path) -> Any:
    try:
        from pyarrow import ArrowInvalid
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise UserError(
            f"{file}: reading Parquet needs pyarrow: pip install 'pointsman[data]', or give JSONL instead"
        ) from None
    try:
        return ParquetFile(file)
    except (ArrowInvalid, OSError) as error:
        raise UserError(f"{file}: not a Parquet file that can be read: {error}") from None
