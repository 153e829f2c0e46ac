"""Which files belong to which job, or to what outlives it.

    artifacts.put_bytes("labels.json", data)          # the job's file of that name from now on
    artifacts.read("labels.json")                     # checked against its hash
    hold(connection, artifact, "router 7")            # keeps the file beyond its job, in that transaction

A file goes with the last row that names its hash. Looking whether one is left and removing the file
happen under a lock of that hash, which whoever puts the same bytes holds too.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, delete, func, select, text
from sqlalchemy.dialects.postgresql import insert

from pointsman.errors import ArtifactError, JobStopped, UserError
from pointsman.ids import new_id
from pointsman.jobs.files import ArtifactStore, Stored, describe
from pointsman.jobs.lease import Claim, lock
from pointsman.jobs.patience import patiently
from pointsman.jobs.view import Artifact
from pointsman.tables import ArtifactRow, RouterVersionRow

NAME_CHARS = 200

_rows = ArtifactRow.__table__  # type: ignore[attr-defined]
_routers = RouterVersionRow.__table__  # type: ignore[attr-defined]


class Artifacts:
    """The files of one job. What a stale worker puts is refused (LeaseLost) and leaves no file."""

    def __init__(self, engine: Engine, files: ArtifactStore, held: Claim) -> None:
        self._engine = engine
        self._files = files
        self._held = held

    def put_bytes(self, name: str, data: bytes) -> Artifact:
        """Keeps `data` as the job's file `name`, whose suffix says its format; what had the name before goes."""
        return self._keep(_checked(name), data)

    def put_file(self, name: str, path: Path) -> Artifact:
        """As `put_bytes`, for a local file."""
        return self._keep(_checked(name), path)

    def find(self, name: str) -> Artifact | None:
        """The job's file of that name."""
        chosen = select(_rows).where(_rows.c.job_id == self._held.job_id, _rows.c.name == name)
        with self._engine.connect() as connection:
            row = connection.execute(chosen).one_or_none()
        return None if row is None else Artifact.of(row)

    def read(self, name: str) -> bytes:
        """The bytes of the job's file of that name, checked. ArtifactError where there is none."""
        found = self._get(name)
        return self._files.read(found.hash, found.suffix)

    def fetch(self, name: str) -> Path:
        """A local path to the job's file of that name, checked just now."""
        found = self._get(name)
        return self._files.fetch(found.hash, found.suffix)

    def remove(self, name: str) -> None:
        """Drops the job's file of that name, if there is one."""
        if (found := self.find(name)) is not None:
            patiently(lambda: drop(self._engine, self._files, [found]))

    def _get(self, name: str) -> Artifact:
        if (found := self.find(name)) is None:
            raise ArtifactError(f"job {self._held.job_id} has no file {name!r}")
        return found

    def _keep(self, name: str, content: bytes | Path) -> Artifact:
        stored = describe(content, Path(name).suffix)
        try:
            before, now = patiently(lambda: self._put(name, stored, content))
        except JobStopped:
            collect(self._engine, self._files, stored.hash, stored.suffix)
            raise
        if before is not None and before.hash != now.hash:
            patiently(lambda: collect(self._engine, self._files, before.hash, before.suffix))
        return now

    def _put(self, name: str, stored: Stored, content: bytes | Path) -> tuple[Artifact | None, Artifact]:
        """The job's row is locked after the file is written: heartbeats must not wait for a long copy."""
        with self._engine.begin() as connection:
            lock_hash(connection, stored.hash)
            self._files.put_described(stored, content)
            lock(connection, self._held)
            mine = select(_rows).where(_rows.c.job_id == self._held.job_id, _rows.c.name == name)
            before = connection.execute(mine).one_or_none()
            row = connection.execute(_named(self._held, name, stored)).one()
        return None if before is None else Artifact.of(before), Artifact.of(row)


def hold(connection: Connection, artifact: Artifact, name: str) -> None:
    """Keeps a file for something that outlives its job, as part of the transaction that makes it."""
    lock_hash(connection, artifact.hash)
    kept = {column.name: getattr(artifact, column.name) for column in _rows.c}
    row = kept | {"id": new_id(), "job_id": None, "name": _checked(name), "created_at": func.clock_timestamp()}
    connection.execute(insert(_rows).values(row))


def drop(engine: Engine, files: ArtifactStore, artifacts: Iterable[Artifact]) -> int:
    """Removes references, and each file that was referred to by nothing else; how many files."""
    removed = 0
    for artifact in artifacts:
        with engine.begin() as connection:
            lock_hash(connection, artifact.hash)
            connection.execute(delete(_rows).where(_rows.c.id == artifact.id))
        removed += collect(engine, files, artifact.hash, artifact.suffix)
    return removed


def collect(engine: Engine, files: ArtifactStore, hash: str, suffix: str) -> bool:
    """Removes a file unless something refers to it; whether it did."""
    with engine.begin() as connection:
        lock_hash(connection, hash)
        if referred(connection, hash):
            return False
        files.delete(hash, suffix)
        return True


def referred(connection: Connection, hash: str) -> bool:
    """Whether a job, what outlives one, or a router version names the hash."""
    rows = select(_rows.c.id).where(_rows.c.hash == hash)
    routers = select(_routers.c.id).where(_routers.c.artifact_hash == hash)
    return bool(connection.execute(select(rows.exists() | routers.exists())).scalar())


def lock_hash(connection: Connection, hash: str) -> None:
    """Until the transaction ends nobody else puts or removes this file."""
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": int(hash[:15], 16)})


def _named(held: Claim, name: str, stored: Stored) -> Any:
    changed = {"hash": stored.hash, "suffix": stored.suffix, "media": stored.media, "size": stored.size}
    row = {"id": new_id(), "project_id": held.project_id, "job_id": held.job_id, "name": name, **changed}
    made = insert(_rows).values(**row, created_at=func.clock_timestamp())
    return made.on_conflict_do_update(index_elements=["job_id", "name"], set_=changed).returning(_rows)


def _checked(name: str) -> str:
    if not 0 < len(name) <= NAME_CHARS or not name.isprintable():
        raise UserError(f"artifact: expected a name of 1 to {NAME_CHARS} printable characters, got {name[:80]!r}")
    return name
