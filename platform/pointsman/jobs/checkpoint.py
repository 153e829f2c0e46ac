"""What a runner keeps for an attempt after it: small JSON values by name, in the job's row.

What is large (weights, a table) is put as an artifact, and its name or step kept here.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, func, select, update
from sqlalchemy.dialects.postgresql import JSONB

from pointsman.jobs.lease import ANEW, Claim, guarded
from pointsman.jobs.patience import patiently
from pointsman.jobs.values import storable
from pointsman.tables import JobRow

_jobs = JobRow.__table__  # type: ignore[attr-defined]


class Checkpoint:
    """The kept values of one job. What a stale worker keeps is refused: LeaseLost, or JobCancelled."""

    def __init__(self, engine: Engine, held: Claim) -> None:
        self._engine = engine
        self._held = held

    def get(self, name: str, default: Any = None) -> Any:
        """The value that was kept last under this name."""

        def once() -> Any:
            with self._engine.connect() as connection:
                kept = select(_jobs.c.checkpoint).where(_jobs.c.id == self._held.job_id)
                return connection.execute(kept).scalar_one()

        return patiently(once).get(name, default)

    def set(self, name: str, value: Any) -> None:
        """Keeps a value. Something was achieved since the last crash, so crashes are counted anew."""
        kept = storable({name: value}, f"checkpoint {name}")

        def once() -> None:
            with guarded(self._engine, self._held) as (connection, row):
                same = row.checkpoint.get(name) == kept[name]
                merged = _jobs.c.checkpoint.op("||")(func.cast(kept, JSONB))
                connection.execute(
                    update(_jobs)
                    .where(_jobs.c.id == self._held.job_id)
                    .values(checkpoint=merged, **({} if same else ANEW))
                )

        patiently(once)
