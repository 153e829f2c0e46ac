"""Label sets and router versions by their ids, and where a machine keeps what was computed from texts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, String, Table, cast, select
from sqlalchemy.dialects.postgresql import insert

from distill.labels.store import LabelSet, from_files
from pointsman.config import Settings
from pointsman.errors import UserError
from pointsman.jobs.files import ArtifactStore
from pointsman.promotion.versions import LEAST_CHARS, StoredVersion, find_version
from pointsman.queries.scope import of_project
from pointsman.tables import METADATA
from pointsman.words import RouterKind

LABEL_SET: Table = METADATA.tables["label_set"]
__all__ = ["find_version"]


@dataclass(frozen=True)
class StoredLabels:
    """A row of `label_set` with its content."""

    id: str
    labels: LabelSet
    manifest: dict[str, Any]


def find_labels(connection: Connection, project: str, named: str) -> Any:
    """The row of this id, or the only one whose id begins so. Raises `UserError` that says what is wrong."""
    name = named.strip().lower()
    if len(name) < LEAST_CHARS or set(name) - set("0123456789abcdef-"):
        raise UserError(f"labels: expected a label set's id or its first {LEAST_CHARS} characters, got {named!r}")
    text = cast(LABEL_SET.c.id, String)
    found = connection.execute(
        select(LABEL_SET).where(of_project(LABEL_SET, project), text.startswith(name)).limit(2)
    ).all()
    if len(found) != 1:
        said = "several label sets begin with" if found else "this project has no label set"
        raise UserError(f"{said} {named!r}; `pointsman labels --list` shows them")
    return found[0]


def read_labels(connection: Connection, files: ArtifactStore, project: str, named: str) -> StoredLabels:
    """The set with its rows, its files checked by their hashes."""
    row = find_labels(connection, project, named)
    labels = from_files(files.read(row.data_hash, ".parquet"), files.read(row.manifest_hash, ".json"))
    return StoredLabels(str(row.id), labels, row.manifest)


def version_of_kind(connection: Connection, named: str, *kinds: RouterKind) -> StoredVersion:
    """A router version of one of these kinds."""
    found = find_version(connection, named)
    if found.kind not in kinds:
        raise UserError(f"router version {found.id} is of kind {found.kind}, expected {' or '.join(kinds)}")
    return found


def feature_folder(settings: Settings) -> Path:
    """Where states and embeddings are kept by text hash."""
    return settings.home / "cache" / "features"


def insert_labels(connection: Connection, values: dict[str, Any]) -> str:
    connection.execute(insert(LABEL_SET).values(values))
    return str(UUID(values["id"]))
