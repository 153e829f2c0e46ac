"""Files of rows: JSONL, CSV, Parquet. A file appears under its name when it is whole, and never before.

In CSV a text that a spreadsheet would take for a formula gets an apostrophe before it; numbers stay as they are.
Objects and lists are JSON texts in CSV and Parquet. Money is exact: a decimal text in JSONL and CSV, a decimal in
Parquet.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, Protocol, Self, cast, get_args
from uuid import UUID

import msgspec

from pointsman.errors import UserError

Form = Literal["jsonl", "csv", "parquet"]
FORMS: tuple[str, ...] = get_args(Form)
Row = dict[str, Any]
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_json = msgspec.json.Encoder(enc_hook=str, decimal_format="string").encode


class Writer(Protocol):
    """Takes rows in batches; `close` completes the file."""

    def write(self, rows: Sequence[Row]) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Written:
    """A file that is there: its rows, bytes, and SHA-256."""

    file: Path
    rows: int
    bytes: int
    sha256: str


def form_of(file: Path) -> Form:
    """By the name: .jsonl, .csv (both also .gz) or .parquet. `UserError` for another."""
    plain = Path(file.stem) if file.suffix == ".gz" else file
    form = plain.suffix.lower().removeprefix(".")
    if form not in FORMS or (form == "parquet" and file.suffix == ".gz"):
        raise UserError(f"{file}: expected a name that ends in .jsonl, .csv (both also with .gz) or .parquet")
    return cast(Form, form)


def write_rows(file: Path, columns: Sequence[Any], pages: Iterable[Sequence[Row]], *, replace: bool = False) -> Written:
    """Writes `pages` of rows with these (labelled) columns. `UserError` where it exists and may not go."""
    form = form_of(file)
    if file.exists() and not replace:
        raise UserError(f"{file}: exists already; name another file, or give --force")
    rows = 0
    try:
        with _Unfinished(file) as unfinished:
            writer = _writers()[form](unfinished.stream, columns)
            for page in pages:
                writer.write(page)
                rows += len(page)
            writer.close()
            unfinished.finish()
    except OSError as error:
        raise UserError(f"{file}: cannot be written: {error.strerror}") from None
    return Written(file, rows, file.stat().st_size, _digest(file))


def neutral(value: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return "'" + value if value.startswith(_FORMULA) else value


class _Unfinished(AbstractContextManager["_Unfinished"]):
    """The file beside its name, mode 0600; it goes where it was not finished."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._beside = file.with_name(f".{file.name}.{os.getpid()}.part")

    def __enter__(self) -> Self:
        descriptor = os.open(self._beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._raw = os.fdopen(descriptor, "wb")
        # The time in a gzip head would give equal rows unequal bytes.
        zipped = self._file.suffix == ".gz"
        self.stream = cast("IO[bytes]", gzip.GzipFile("", "wb", fileobj=self._raw, mtime=0) if zipped else self._raw)
        return self

    def finish(self) -> None:
        self.stream.close()
        self._raw.close()
        self._beside.replace(self._file)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._raw.close()
        self._beside.unlink(missing_ok=True)


class _Jsonl:
    def __init__(self, stream: IO[bytes], columns: Sequence[Any]) -> None:
        self._stream = stream

    def write(self, rows: Sequence[Row]) -> None:
        self._stream.write(b"".join(_json(row) + b"\n" for row in rows))

    def close(self) -> None: ...


class _Csv:
    def __init__(self, stream: IO[bytes], columns: Sequence[Any]) -> None:
        self._text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
        self._writer = csv.writer(self._text)
        self._writer.writerow([column.name for column in columns])

    def write(self, rows: Sequence[Row]) -> None:
        self._writer.writerows([_cell(value) for value in row.values()] for row in rows)

    def close(self) -> None:
        self._text.detach()


class _Parquet:
    def __init__(self, stream: IO[bytes], columns: Sequence[Any]) -> None:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise UserError("writing Parquet needs pyarrow: pip install 'pointsman[data]', or name a .jsonl") from None
        self._pa = pa
        self._schema = pa.schema([(column.name, _arrow(pa, column.type.python_type)) for column in columns])
        self._writer = pq.ParquetWriter(stream, self._schema, compression="zstd")

    def write(self, rows: Sequence[Row]) -> None:
        plain = [{name: _plain(value) for name, value in row.items()} for row in rows]
        self._writer.write_table(self._pa.Table.from_pylist(plain, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


def _writers() -> dict[Form, Callable[[IO[bytes], Sequence[Any]], Writer]]:
    return {"jsonl": _Jsonl, "csv": _Csv, "parquet": _Parquet}


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, int | float | Decimal | UUID):
        return f"{value:f}" if isinstance(value, Decimal) else str(value)
    return neutral(value if isinstance(value, str) else _json(value).decode())


def _plain(value: Any) -> Any:
    """What Arrow takes: ids and open structures as texts."""
    if isinstance(value, UUID):
        return str(value)
    return _json(value).decode() if isinstance(value, dict | list) else value


def _arrow(pa: Any, kind: type) -> Any:
    """The Arrow type of a column; open structures, lists and ids are texts."""
    known = {
        bool: pa.bool_(), int: pa.int64(), float: pa.float64(), Decimal: pa.decimal128(20, 10),
        datetime: pa.timestamp("us", tz="UTC"),
    }  # fmt: skip
    return known.get(kind, pa.string())


def _digest(file: Path) -> str:
    digest = sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
