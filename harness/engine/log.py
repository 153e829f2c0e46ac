"""Where a run's rows go: rows as dicts of the log's tables, a decision before its calls, one outcome for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from pointsman.journal import Journal
from pointsman.journal.lines import TableRow

Row = dict[str, Any]


class Log(Protocol):
    """`open` and then exactly one `outcome` for every decision, with its calls between them."""

    def open(self, decision: Row) -> None:
        """Raises `StoreError` where it cannot be taken: then nothing may be done under it."""
        ...

    def call(self, row: Row) -> None: ...

    def outcome(self, row: Row) -> None: ...

    async def synced(self) -> None:
        """Returns once every decision opened so far is safe: nothing is told to a client before that."""
        ...


class MemoryLog:
    """Keeps the rows, for rollouts and tests."""

    def __init__(self) -> None:
        self.decisions: list[Row] = []
        self.calls: list[Row] = []
        self.outcomes: list[Row] = []

    def open(self, decision: Row) -> None:
        self.decisions.append(decision)

    def call(self, row: Row) -> None:
        self.calls.append(row)

    def outcome(self, row: Row) -> None:
        self.outcomes.append(row)

    async def synced(self) -> None:
        return


class JournalLog:
    """Writes to a gateway's journal. `clean` makes a row fit for it: redacted, or without texts that may not be kept.

    A decision's calls wait for its outcome and go in one line with it, as those of a single request do.
    `seen` is told of every line, for reads of what is not in Postgres yet. `opening` (the request, its episode) goes
    in one line with the first decision, so that there is neither without the other.
    """

    def __init__(
        self,
        journal: Journal,
        clean: Callable[[str, Row], Row] = lambda table, row: row,
        seen: Callable[[list[TableRow]], None] = lambda rows: None,
        opening: Sequence[TableRow] = (),
    ) -> None:
        self._journal = journal
        self._clean = clean
        self._seen = seen
        self._opening = opening
        self._ticket = 0
        self._calls: dict[str, list[TableRow]] = {}

    def open(self, decision: Row) -> None:
        rows: list[TableRow] = [*self._opening, ("decision", self._clean("decision", decision))]
        opens = (decision["id"], decision["project_id"], decision["episode_id"])
        self._ticket = self._journal.append(rows, opens=opens)
        self._opening = ()
        self._seen(rows)

    def call(self, row: Row) -> None:
        self._calls.setdefault(row["decision_id"], []).append(("call", self._clean("call", row)))

    def outcome(self, row: Row) -> None:
        rows = [*self._calls.pop(row["decision_id"], ()), ("outcome", self._clean("outcome", row))]
        self._journal.append_or_count(rows, closes=row["decision_id"])
        self._seen(rows)

    async def synced(self) -> None:
        await self._journal.synced(self._ticket)
