"""Checked values from the cells of a row; every fault names file, row, column and what was expected.

A null, and a NaN where a number is optional (pandas writes missing numbers so), means "not recorded".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from pointsman.errors import UserError

COST_PLACES = Decimal("1e-10")  # what the log's money columns hold
MAX_COST = 1_000_000
MAX_TOKENS = 2**31 - 1
SHOWN_CHARS = 60


@dataclass(frozen=True)
class Cells:
    """One row of one file."""

    file: Path
    row: int
    values: Mapping[str, Any]

    def fault(self, column: str, expected: str) -> UserError:
        shown = repr(self.values.get(column))
        shown = shown if len(shown) <= SHOWN_CHARS else shown[:SHOWN_CHARS] + "…"
        return UserError(f"{self.file}: row {self.row}: column {column!r}: expected {expected}, got {shown}")

    def identity(self, column: str) -> str:
        """A text or a whole number, as text."""
        value = self.values[column]
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            raise self.fault(column, "a text or a whole number")
        return str(value)

    def text(self, column: str) -> str:
        value = self.values[column]
        if not isinstance(value, str) or not value:
            raise self.fault(column, "a text that is not empty")
        return value

    def optional_text(self, column: str) -> str | None:
        value = self.values.get(column)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return None
        if not isinstance(value, str):
            raise self.fault(column, "a text or null")
        return value

    def score(self, column: str) -> float:
        value = self.values[column]
        if not isinstance(value, int | float) or not 0 <= value <= 1:  # NaN fails both comparisons
            raise self.fault(column, "a number from 0 to 1")
        return float(value)

    def optional_number(self, column: str) -> float | None:
        """A finite number of at least 0."""
        value = self._present(column)
        if value is None:
            return None
        if not math.isfinite(value) or value < 0:
            raise self.fault(column, "a number of at least 0")
        return float(value)

    def optional_count(self, column: str) -> int | None:
        """A whole number of at least 0; a float that is whole will do (pandas makes them)."""
        value = self._present(column)
        if value is None:
            return None
        if not math.isfinite(value) or value != int(value) or not 0 <= value <= MAX_TOKENS:
            raise self.fault(column, f"a whole number from 0 to {MAX_TOKENS}")
        return int(value)

    def optional_cost(self, column: str) -> Decimal | None:
        """USD, rounded to the ten decimal places that the log keeps."""
        value = self._present(column)
        if value is None:
            return None
        if not 0 <= value <= MAX_COST:
            raise self.fault(column, f"USD from 0 to {MAX_COST}")
        return Decimal(str(value)).quantize(COST_PLACES)

    def optional_moment(self, column: str) -> datetime | None:
        """A timestamp, or its ISO 8601 text; without a zone it is UTC."""
        value = self.values.get(column)
        if value is None:
            return None
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                value = None
        if not isinstance(value, datetime) or not 1970 < value.year < 9999:
            raise self.fault(column, "a timestamp or ISO 8601 text, from 1971 on")
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)

    def _present(self, column: str) -> int | float | Decimal | None:
        value = self.values.get(column)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise self.fault(column, "a number or null")
        return None if isinstance(value, float) and math.isnan(value) else value
