"""How much the partitions of the log hold, and which of them retention would drop."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, func, select, table, text

from pointsman.database.partitions import month_start
from pointsman.tables import PARTITIONED

_SIZES = text("""
SELECT child.relname AS name, child.reltuples AS rows, pg_total_relation_size(child.oid) AS bytes
FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid
WHERE inhparent = to_regclass(:table) ORDER BY child.relname
""")


@dataclass(frozen=True)
class PartitionSize:
    """One partition. `month` is its first instant (None: the default one, or one made by hand).

    `rows` is the server's estimate, exact where there is none yet; `bytes` has indexes and TOAST.
    """

    table: str
    name: str
    month: datetime | None
    rows: int
    bytes: int

    @property
    def until(self) -> datetime | None:
        """The first instant that is no longer in it."""
        return None if self.month is None else month_start(self.month, 1)


def partition_sizes(connection: Connection) -> list[PartitionSize]:
    """Every partition of the log, by table and name."""
    return [
        PartitionSize(of, row.name, _month(of, row.name), _rows(connection, row.name, row.rows), int(row.bytes))
        for of in PARTITIONED
        for row in connection.execute(_SIZES, {"table": of})
    ]


def _rows(connection: Connection, name: str, estimate: float) -> int:
    """The server's estimate; counted where it was never analysed."""
    if estimate >= 0:
        return int(estimate)
    return int(connection.execute(select(func.count()).select_from(table(name))).scalar_one())


def _month(of: str, name: str) -> datetime | None:
    found = re.fullmatch(rf"{of}_(\d{{4}})_(\d{{2}})", name)
    return datetime(int(found[1]), int(found[2]), 1, tzinfo=UTC) if found else None
