"""The common oracle: what callers saw, the workers' journal, and decision, call and outcome in Postgres, joined.

Asks are known by the number in their text, calls by the serial that the worker answered with. All of
`lost`, `doubled`, `open`, `unlogged_calls`, `invented_calls` and `wrong_serials` must be 0. Calls under a
decision that is `abandoned` are left out: a gateway that was killed cannot say how they went.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.stress.client import Ask
from pointsman.database.engine import psycopg_url

FAULTS = ("lost", "doubled", "open", "unlogged_calls", "invented_calls", "wrong_serials")
PREFIX = "chatcmpl-"  # before a serial, in the ids of answers
_DECISIONS = """
SELECT d.id::text, d.request_id::text,
  CASE WHEN r.text LIKE 'ask %' THEN split_part(left(r.text, 40), ' ', 2) ELSE '' END, o.status
FROM decision d LEFT JOIN request r ON r.id = d.request_id LEFT JOIN outcome o ON o.decision_id = d.id
WHERE d.origin = 'traffic'
"""
_CALLS = "SELECT decision_id::text, completion_id, status, fault, worker, output_tokens, started_at FROM call"


@dataclass
class Match:
    """The joined log; the rows are kept for a scenario's own questions. `numbers`: of the asks, by decision."""

    journal: list[dict[str, Any]]
    statuses: Counter[str] = field(default_factory=Counter)
    calls: list[Any] = field(default_factory=list)
    numbers: dict[str, str] = field(default_factory=dict)
    lost: int = 0
    doubled: int = 0
    open: int = 0
    unlogged_calls: int = 0
    invented_calls: int = 0
    wrong_serials: int = 0

    @property
    def sound(self) -> bool:
        return not any(getattr(self, name) for name in FAULTS)

    def as_dict(self) -> dict[str, Any]:
        counts = {name: getattr(self, name) for name in FAULTS}
        return {**counts, "rows": sum(self.statuses.values()), "statuses": dict(sorted(self.statuses.items()))}


def read_journal(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def match(url: str, journal: list[dict[str, Any]], asks: Sequence[Ask], *, repeated: bool = False) -> Match:
    """The join. `repeated`: an ask may have been sent several times, and each that was accepted has its row."""
    with psycopg.connect(psycopg_url(url)) as connection:
        decisions = connection.execute(_DECISIONS).fetchall()
        calls = connection.execute(_CALLS).fetchall()
    numbers = {row[0]: row[2] for row in decisions}
    found = Match(journal, Counter(row[3] or "none" for row in decisions), calls, numbers)
    known = {row[0] for row in decisions}
    found.lost = sum(ask.decision not in known for ask in asks if ask.decision is not None)
    found.lost += sum(ask.status == 200 and ask.decision is None for ask in asks)
    found.open = found.statuses["none"]
    found.doubled = _doubled(row[0] for row in decisions) + _doubled(row[1] for row in decisions)
    if not repeated:
        found.doubled += _doubled(row[2] for row in decisions if row[2].isdecimal())
    match_calls(found, decisions)
    match_serials(found, asks)
    return found


def _doubled(values: Any) -> int:
    return sum(times - 1 for times in Counter(values).values())


def match_calls(found: Match, decisions: list[Any]) -> None:
    """Every call that a worker saw is logged under its ask, and every logged one was seen by a worker."""
    unknown = {row[2] for row in decisions if row[3] in ("abandoned", None)}
    seen = Counter(str(line["number"]) for line in found.journal if line["number"] is not None)
    logged: Counter[str] = Counter()
    unsure: Counter[str] = Counter()  # cancelled, or no connection: a worker may never have read it
    for row in found.calls:
        number = found.numbers.get(row[0], "")
        logged[number] += 1
        unsure[number] += row[2] == "cancelled" or row[3] in ("connect", "timeout")
    for number in seen.keys() | logged.keys():
        if number in unknown or not number.isdecimal():
            continue
        found.unlogged_calls += max(seen[number] - logged[number], 0)
        found.invented_calls += max(logged[number] - unsure[number] - seen[number], 0)


def match_serials(found: Match, asks: Sequence[Ask]) -> None:
    """The serial with which an ask was answered stands on a call of its decision, and on no other."""
    by_decision: defaultdict[str, list[str | None]] = defaultdict(list)
    for row in found.calls:
        by_decision[row[0]].append(row[1])
    for ask in asks:
        if ask.whole and ask.decision and ask.serial is not None:
            found.wrong_serials += f"{PREFIX}{ask.serial}" not in by_decision[ask.decision]
    found.wrong_serials += _doubled(row[1] for row in found.calls if (row[1] or "").removeprefix(PREFIX).isdecimal())
