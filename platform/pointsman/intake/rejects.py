"""The file of rejects: each line that could not be taken, whole, with its number and the reason. Mode 0600.

The file is made with the first reject; an import without any removes what an earlier one of the same name left.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import msgspec

from pointsman.intake.lines import Fault

_encode = msgspec.json.Encoder(enc_hook=str).encode


class Rejects:
    """Takes faults; `count` of them, and the `first` few."""

    SHOWN = 5

    def __init__(self, file: Path) -> None:
        self.file = file
        self.count = 0
        self.first: list[Fault] = []
        self._stream: IO[bytes] | None = None

    def __enter__(self) -> Self:
        self.file.unlink(missing_ok=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._stream is not None:
            self._stream.close()

    def add(self, fault: Fault) -> None:
        self.count += 1
        if len(self.first) < self.SHOWN:
            self.first.append(fault)
        if self._stream is None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self._stream = os.fdopen(os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")
        self._stream.write(_encode({"line": fault.number, "reason": fault.reason, "row": fault.raw}) + b"\n")
