"""A file as numbered rows: JSONL, CSV (both also gzipped), Parquet, or a JSON list.

One row at a time is held (a Parquet batch; a JSON list whole, up to `MAX_LIST_BYTES`). A line that is no row gives
a `Fault` in its place. Numbers count lines from 1, in Parquet and JSON lists rows.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from pointsman.errors import UserError
from pointsman.replay.rows import Table

MAX_LINE_BYTES = 64 * 1024 * 1024
MAX_LIST_BYTES = 256 * 1024 * 1024
_SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One row. `raw` is what a file of rejects keeps: the line as it stood, or the row's values."""

    number: int
    values: dict[str, Any]
    raw: Any


@dataclass(frozen=True, slots=True)
class Fault:
    """A line that cannot be taken, and why."""

    number: int
    reason: str
    raw: Any


def form_of(file: Path) -> str:
    """`jsonl`, `json`, `csv`, `tsv` or `parquet`, by the name of the file; anything else is the user's mistake."""
    name = Path(file.stem) if file.suffix == ".gz" else file
    form = _SUFFIXES.get(name.suffix.lower())
    if form is None or (file.suffix == ".gz" and form == "parquet"):
        raise UserError(f"{file}: expected a name that ends in {', '.join(_SUFFIXES)} (all but Parquet also with .gz)")
    return form


def read_lines(file: Path) -> Iterator[Line | Fault]:
    """The rows of `file`, from its start. `UserError` where the file itself cannot be read."""
    form = form_of(file)
    if not file.is_file():
        raise UserError(f"{file}: no such file")
    if form == "parquet":
        yield from _parquet(file)
    elif form in ("csv", "tsv"):
        yield from _delimited(file, "," if form == "csv" else "\t")
    elif form == "json":
        yield from _list(file)
    else:
        yield from _jsonl(file)


def _jsonl(file: Path) -> Iterator[Line | Fault]:
    decoder = msgspec.json.Decoder(dict[str, Any])
    with _opened(file) as stream:
        number = 0
        while raw := stream.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(raw) > MAX_LINE_BYTES:
                _skip_rest(stream, raw)
                yield Fault(number, f"expected a line of {MAX_LINE_BYTES} bytes at most", None)
                continue
            text = raw.strip().removeprefix(b"\xef\xbb\xbf")
            if not text:
                continue
            kept = text.decode("utf-8", "replace")
            try:
                yield Line(number, decoder.decode(text), kept)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                yield Fault(number, f"expected one JSON object: {error}", kept)


def _delimited(file: Path, delimiter: str) -> Iterator[Line | Fault]:
    with _opened(file) as stream:
        text = (line.decode("utf-8", "replace").replace("\x00", "\ufffd") for line in stream)
        csv.field_size_limit(MAX_LINE_BYTES)
        reader = csv.reader(text, delimiter=delimiter)
        header = [name.strip().removeprefix("\ufeff") for name in next(reader, [])]
        if len(set(header)) < len(header) or not any(header):
            raise UserError(f"{file}: expected a first line of column names, each once")
        for cells in reader:
            if not cells:
                continue
            number = reader.line_num
            if len(cells) != len(header):
                yield Fault(number, f"expected {len(header)} cells, got {len(cells)}", cells)
                continue
            # An empty cell is how CSV says that nothing is known.
            values = {name: cell for name, cell in zip(header, cells, strict=True) if cell != ""}
            yield Line(number, values, values)


def _parquet(file: Path) -> Iterator[Line | Fault]:
    for number, values in Table(file, "parquet", ()).rows():
        yield Line(number, values, values)


def _list(file: Path) -> Iterator[Line | Fault]:
    with _opened(file) as stream:
        raw = stream.read(MAX_LIST_BYTES + 1)
    if len(raw) > MAX_LIST_BYTES:
        raise UserError(f"{file}: a JSON list is read whole and may have {MAX_LIST_BYTES} bytes; give JSONL instead")
    try:
        rows = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{file}: expected a JSON list of objects: {error}") from None
    if not isinstance(rows, list):
        raise UserError(f"{file}: expected a JSON list of objects; one object a line is named .jsonl")
    for number, values in enumerate(rows, 1):
        if isinstance(values, dict):
            yield Line(number, values, values)
        else:
            yield Fault(number, "expected a JSON object", values)


@contextmanager
def _opened(file: Path) -> Iterator[IO[bytes]]:
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as stream:
            yield cast("IO[bytes]", stream)
    except (OSError, EOFError) as error:
        raise UserError(f"{file}: cannot be read: {error}") from None


def _skip_rest(stream: IO[bytes], raw: bytes) -> None:
    while raw and not raw.endswith(b"\n"):
        raw = stream.readline(MAX_LINE_BYTES)
