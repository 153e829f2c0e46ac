"""A run's rows on their way to the journal: redacted, without text that may not be kept, seen by who reads them soon.

It also counts what was spent, because a run that is broken off tells nobody its totals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec

from harness.gateway.recent import Entry, Recent
from pointsman.budgets import dearest
from pointsman.journal.lines import TableRow
from pointsman.pool import Pool
from pointsman.redaction import Redactor
from pointsman.upstream.price import add, cost
from pointsman.upstream.usage import Usage

Row = dict[str, Any]
_TEXTS = ("completion", "reasoning", "error", "raw_reply")
_VALUES = ("messages", "tool_calls", "plan")


@dataclass
class Spent:
    """Of the whole tree. `cost` is None where a price is unknown; `most` takes the dearest of the pool there."""

    cost: Decimal | None = Decimal(0)
    most: Decimal = Decimal(0)
    tokens: int = 0
    calls: int = 0


class TeamRows:
    """Hooks for a `JournalLog`. `stored` false: no text of the request or of any answer is kept."""

    def __init__(
        self, recent: Recent, redactor: Redactor, pool: Pool, root_id: str, opening: Sequence[TableRow], *, stored: bool
    ) -> None:
        self._recent = recent
        self._redactor = redactor
        self._stored = stored
        self._root_id = root_id
        self._opening = dict(opening)
        self._pool = pool
        self._dearest = dearest(worker.price for worker in pool.workers)
        self.spent = Spent()
        self.overhead_ms = 0.0
        self.http_status: int | None = None
        self.outcome: Row | None = None

    def clean(self, table: str, row: Row) -> Row:
        """A row as it may be kept."""
        if table == "call":
            self._count(row)
        elif table == "decision":
            self._routed(row)
        elif table == "outcome" and row["id"] == self._root_id:
            row = {**row, "overhead_ms": self.overhead_ms, "http_status": self.http_status}
        kept = dict(row)
        for name in _TEXTS:
            if name in row:
                kept[name] = self._redactor.text(row[name]) if self._stored else None
        for name in _VALUES:
            if name in row:
                kept[name] = self._redactor.value(row[name]) if self._stored else None
        if not self._stored and row.get("error") is not None:
            kept["error"] = row.get("fault")
        return kept

    def seen(self, rows: list[TableRow]) -> None:
        """Puts a line's rows where this process finds them before Postgres has them."""
        calls = [row for table, row in rows if table == "call"]
        for table, row in rows:
            if table == "decision":
                request = self._opening.get("request") if row["id"] == self._root_id else None
                entry = Entry(row["project_id"], row["episode_id"], 500, row, request=request)
                self._recent.add(row["id"], entry)
            elif table == "outcome":
                size = sum(_size(call) for call in calls)
                self._recent.end(row["decision_id"], calls, row, size)
                if row["id"] == self._root_id:
                    self.outcome = row

    def _count(self, row: Row) -> None:
        """A worker's call; an orchestrator's stands with its tokens and cost on its decision."""
        if row.get("purpose") == "route":
            return
        spent, known = self.spent, row.get("cost", Decimal(0))
        taken = (row.get("input_tokens") or 0, row.get("output_tokens") or 0)
        spent.calls += 1
        spent.tokens += sum(taken)
        spent.cost = add(spent.cost, known)
        guess = cost(Usage(*taken), self._dearest)
        spent.most += known if known is not None else guess or Decimal(0)

    def _routed(self, row: Row) -> None:
        known = row.get("router_cost", Decimal(0))
        self.spent.tokens += (row.get("router_input_tokens") or 0) + (row.get("router_output_tokens") or 0)
        self.spent.cost = add(self.spent.cost, known)
        self.spent.most += known or Decimal(0)


def _size(call: Row) -> int:
    return len(call.get("completion") or "") + len(msgspec.json.encode(call.get("messages")))
