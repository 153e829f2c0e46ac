"""What clients saw against what the log holds: nothing missing, nothing twice, everything ended."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg

from pointsman.database.engine import psycopg_url
from pointsman.journal.folder import waiting_bytes


@dataclass(frozen=True)
class Ledger:
    """Counts over one log. `missing` are ids that a client was given and the log has not."""

    rows: int
    missing: int
    doubled: int
    without_outcome: int
    outcome_without_decision: int
    abandoned: int

    @property
    def sound(self) -> bool:
        return not (self.missing or self.doubled or self.without_outcome or self.outcome_without_decision)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def read_ledger(url: str, given: Iterable[str]) -> Ledger:
    """The ledger of the log at `url`. Ids are unique within a partition by its key, and here across all of them."""
    with psycopg.connect(psycopg_url(url)) as connection:

        def one(query: str) -> int:
            row = connection.execute(query).fetchone()
            assert row is not None
            return int(row[0])

        known = {row[0] for row in connection.execute("SELECT id::text FROM decision WHERE origin = 'traffic'")}
        return Ledger(
            rows=one("SELECT count(*) FROM decision WHERE origin = 'traffic'"),
            missing=len(set(given) - known),
            doubled=one(
                "SELECT (SELECT count(*) - count(DISTINCT id) FROM decision)"
                " + (SELECT count(*) - count(DISTINCT decision_id) FROM outcome)"
                " + (SELECT count(*) - count(DISTINCT request_id) FROM decision)"
            ),
            without_outcome=one(
                "SELECT count(*) FROM decision d WHERE NOT EXISTS (SELECT FROM outcome o WHERE o.decision_id = d.id)"
            ),
            outcome_without_decision=one(
                "SELECT count(*) FROM outcome o WHERE NOT EXISTS (SELECT FROM decision d WHERE d.id = o.decision_id)"
            ),
            abandoned=one("SELECT count(*) FROM outcome WHERE status = 'abandoned'"),
        )


def await_shipped(url: str, journal: Path, seconds: float = 60.0) -> float:
    """Seconds until nothing waits in the journal and every decision has its outcome."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        if waiting_bytes(journal) == 0 and read_ledger(url, ()).without_outcome == 0:
            return time.monotonic() - began
        time.sleep(0.1)
    raise TimeoutError(f"{waiting_bytes(journal)} bytes still wait after {seconds:.0f} s: {read_ledger(url, ())}")


def children(pid: int) -> dict[str, list[int]]:
    """The processes that `serve` started: by module name, their pids."""
    found: dict[str, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            command = (entry / "cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == pid and len(command) > 2:
            found.setdefault(command[2].decode(), []).append(int(entry.name))
    return found
