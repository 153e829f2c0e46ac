"""A conductor's folder as a job's files, and back; jobs of one kind by their ids."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from pathlib import Path
from uuid import UUID

from sqlalchemy import Engine, String, Table, cast, select

from pointsman.errors import UserError
from pointsman.jobs.context import JobContext
from pointsman.jobs.files import ArtifactStore
from pointsman.jobs.reading import JobReader
from pointsman.jobs.view import Artifact
from pointsman.promotion.versions import LEAST_CHARS
from pointsman.tables import METADATA

_JOB: Table = METADATA.tables["job"]
_PREFIX = "conductor "
_PACKED = "others.json"
_BY_THEMSELVES = frozenset({".safetensors", ".json"})


def job_of(engine: Engine, project: str, named: str, *kinds: str) -> str:
    """The id of a project's job of these kinds that is done, by its id or how it begins. Raises `UserError`."""
    name = named.strip().lower()
    if len(name) < LEAST_CHARS:
        raise UserError(f"expected a job's id or its first {LEAST_CHARS} characters, got {named!r}")
    mine = (_JOB.c.project_id == UUID(project)) & _JOB.c.kind.in_(kinds)
    query = select(_JOB.c.id, _JOB.c.state).where(mine, cast(_JOB.c.id, String).startswith(name, autoescape=True))
    with engine.connect() as connection:
        found = connection.execute(query.limit(2)).all()
    if len(found) != 1:
        told = f"{'several' if found else 'no'} {' or '.join(kinds)} jobs begin with {named!r}"
        raise UserError(f"{told}; see `pointsman jobs list`")
    if found[0].state != "done":
        raise UserError(f"job {found[0].id} is {found[0].state}, expected one that is done")
    return str(found[0].id)


def read_file(engine: Engine, files: ArtifactStore, job_id: str, name: str) -> bytes:
    """A job's file, checked by its hash."""
    found = next((one for one in JobReader(engine).artifacts(job_id) if one.name == name), None)
    if found is None:
        raise UserError(f"job {job_id} has no file {name!r}; it may have been removed with the job's other files")
    return files.read(found.hash, found.suffix)


def put_folder(context: JobContext, folder: Path) -> list[Artifact]:
    """All files of a conductor's folder, the adapter's too. Those that the store takes by suffix stand by themselves;
    the others (a chat template, a list of merges) together in one JSON file."""
    files = {str(path.relative_to(folder)).replace("/", " "): path for path in folder.rglob("*") if path.is_file()}
    plain = {name: path for name, path in files.items() if path.suffix in _BY_THEMSELVES}
    packed = {name: b64encode(path.read_bytes()).decode() for name, path in files.items() if name not in plain}
    put = [context.artifacts.put_file(_PREFIX + name, plain[name]) for name in sorted(plain)]
    return [*put, context.artifacts.put_bytes(_PREFIX + _PACKED, json.dumps(packed, sort_keys=True).encode())]


def fetch_folder(engine: Engine, store: ArtifactStore, job_id: str, folder: Path) -> Path:
    """The plain model of a job's conductor in `folder`; the adapter beside it is left where it is."""
    names = [one.name for one in JobReader(engine).artifacts(job_id) if one.name.startswith(_PREFIX)]
    if _PREFIX + _PACKED not in names:
        raise UserError(f"job {job_id} has left no conductor")
    found = {name.removeprefix(_PREFIX): read_file(engine, store, job_id, name) for name in names if _plain(name)}
    packed = json.loads(found.pop(_PACKED))
    found |= {name: b64decode(text) for name, text in packed.items() if _plain(_PREFIX + name)}
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in found.items():
        (folder / Path(name).name).write_bytes(content)
    return folder


def _plain(name: str) -> bool:
    return not name.startswith(f"{_PREFIX}adapter ")
