"""Reproducible ids of replayed rows: importing a data set twice gives the same ids, so rows are inserted once.

A row's id is a UUIDv7 of the time the query was asked (`asked_at`), else of `UNDATED`, with entropy
from project, data set, query, and for a call its worker and repeat.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from pointsman.hashing import content_hash
from pointsman.ids import id_at

UNDATED = datetime(2020, 1, 1, tzinfo=UTC)
"""The time given to queries that have none: fixed, so that ids repeat, and long before any traffic."""


@dataclass(frozen=True)
class ReplayIds:
    """The ids of one data set in one project."""

    project_id: str
    dataset: str

    def request(self, query_id: str, moment: datetime) -> str:
        return self._made(moment, "request", query_id)

    def decision(self, query_id: str, moment: datetime) -> str:
        return self._made(moment, "decision", query_id)

    def call(self, query_id: str, moment: datetime, worker: str, repeat: int) -> str:
        return self._made(moment, "call", query_id, worker, str(repeat))

    def _made(self, moment: datetime, *parts: str) -> str:
        digest = content_hash([self.project_id, self.dataset, *parts])
        return id_at(moment, bytes.fromhex(digest)[:10])
