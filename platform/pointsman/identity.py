"""Projects and keys: making, revoking, and the directory that a gateway holds in memory.

A key is 32 random bytes after `pm_`; only its SHA-256 is kept. A directory is looked up by the whole
hash, never by a part of the key. A gateway refreshes it once a second and keeps the last one in a
file (mode 0600, hashes only), so that it can start while Postgres is away.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import msgspec
from sqlalchemy import Connection, Engine, select, update
from sqlalchemy.dialects.postgresql import insert

from pointsman.errors import UserError
from pointsman.ids import content_id, is_uuid, new_id
from pointsman.tables import ApiKey, Project
from pointsman.words import Scope, members

DEFAULT_PROJECT = "default"
DEFAULT_PROJECT_ID = content_id("project", DEFAULT_PROJECT)
ADMIN_KEY_FILE = "admin.key"
DIRECTORY_FILE = "directory.json"

_projects = Project.__table__  # type: ignore[attr-defined]
_keys = ApiKey.__table__  # type: ignore[attr-defined]


class KeyEntry(msgspec.Struct, frozen=True):
    """What a gateway knows of one key."""

    id: str
    project_id: str
    scopes: frozenset[str]
    learn: bool = True
    explore: bool = True


class Directory(msgspec.Struct, frozen=True):
    """Keys by hash, and projects' secrets by id."""

    keys: dict[str, KeyEntry]
    secrets: dict[str, str]

    def find(self, key: str) -> KeyEntry | None:
        return self.keys.get(hash_key(key))

    def save(self, home: Path) -> None:
        write_private(home / DIRECTORY_FILE, msgspec.json.encode(self))

    @classmethod
    def saved(cls, home: Path) -> Directory | None:
        """The directory of an earlier run, None where there is none."""
        try:
            return msgspec.json.decode((home / DIRECTORY_FILE).read_bytes(), type=cls)
        except (FileNotFoundError, msgspec.MsgspecError):
            return None


@dataclass(frozen=True)
class KeyRow:
    """A key as people see it in lists."""

    id: str
    project: str
    prefix: str
    scopes: tuple[str, ...]
    owner: str | None
    created_at: datetime
    revoked_at: datetime | None


def hash_key(key: str) -> str:
    """SHA-256 of a key's whole text, in hexadecimal."""
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def ensure_project(connection: Connection, name: str = DEFAULT_PROJECT) -> str:
    """The id of the project of this name, made with a fresh secret where there is none."""
    identity = content_id("project", name)
    connection.execute(
        insert(_projects)
        .values(id=identity, name=name, secret=secrets.token_hex(32), created_at=datetime.now(UTC))
        .on_conflict_do_nothing()
    )
    return identity


def find_project(connection: Connection, name: str) -> str:
    """The id of the project of this name; `UserError` where there is none."""
    found = connection.execute(select(_projects.c.id).where(_projects.c.name == name)).scalar()
    if found is None:
        raise UserError(f"no project {name!r} is in the log")
    return str(found)


def create_key(
    connection: Connection,
    *,
    project: str = DEFAULT_PROJECT,
    scopes: Sequence[Scope] = ("serve", "feedback"),
    owner: str | None = None,
    learn: bool = True,
    explore: bool = True,
    note: str | None = None,
) -> str:
    """Makes a key and returns its text, which is not kept anywhere."""
    if unknown := set(scopes) - set(members(Scope)):
        raise UserError(f"scopes: {sorted(unknown)} unknown, expected some of {list(members(Scope))}")
    key = f"pm_{secrets.token_urlsafe(32)}"
    connection.execute(
        insert(_keys).values(
            id=new_id(),
            project_id=ensure_project(connection, project),
            hash=hash_key(key),
            prefix=key[:7],
            scopes=list(scopes),
            owner=owner,
            learn=learn,
            explore=explore,
            note=note,
            created_at=datetime.now(UTC),
        )
    )
    return key


def list_keys(connection: Connection) -> list[KeyRow]:
    """All keys, newest first."""
    rows = connection.execute(
        select(_keys, _projects.c.name.label("project")).join(_projects).order_by(_keys.c.id.desc())
    )
    return [KeyRow(str(r.id), r.project, r.prefix, tuple(r.scopes), r.owner, r.created_at, r.revoked_at) for r in rows]


def revoke_key(connection: Connection, key_id: str) -> None:
    """Revokes a key by id; every gateway refuses it within two seconds."""
    in_force = update(_keys).where(_keys.c.id == key_id, _keys.c.revoked_at.is_(None))
    if not is_uuid(key_id) or connection.execute(in_force.values(revoked_at=datetime.now(UTC))).rowcount == 0:
        raise UserError(f"no key with id {key_id} is in force; `pointsman keys list` shows them")


def read_directory(engine: Engine) -> Directory:
    """Every key that is in force, and every project's secret."""
    with engine.connect() as connection:
        rows = connection.execute(select(_keys).where(_keys.c.revoked_at.is_(None)))
        keys = {
            row.hash: KeyEntry(str(row.id), str(row.project_id), frozenset(row.scopes), row.learn, row.explore)
            for row in rows
        }
        projects = connection.execute(select(_projects.c.id, _projects.c.secret))
        return Directory(keys, {str(row.id): row.secret for row in projects})


def ensure_admin_key(connection: Connection, home: Path) -> Path:
    """The file (mode 0600) with a key of every scope, for the command line and the dashboard of this home."""
    file = home / ADMIN_KEY_FILE
    if file.exists():
        known = connection.execute(
            select(_keys.c.id).where(_keys.c.hash == hash_key(file.read_text().strip()), _keys.c.revoked_at.is_(None))
        )
        if known.first():
            return file
    key = create_key(connection, scopes=("serve", "feedback", "jobs", "admin"), owner="local", note="pointsman up")
    write_private(file, key.encode())
    return file


def write_private(file: Path, content: bytes) -> None:
    """Writes a file that only its owner may read, atomically."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}.new")
    fresh.unlink(missing_ok=True)  # whatever it is, and whatever its mode
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(content)
        fresh.replace(file)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
