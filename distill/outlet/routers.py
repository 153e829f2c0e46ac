"""A trained router version as a folder: safetensors, its JSON, a PEFT adapter where it has one, a card.

What the JSON files say of this machine (a backbone's folder) is cut down to its last name, and their hashes are
written anew: the version of the log is named on the card, the folder is a copy that loads by itself.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from distill.files import file_hash, read_json, write_json
from distill.jobs.found import find_labels, read_labels
from distill.outlet.cards import Source, router_card
from distill.outlet.evaluations import newest_evaluation
from distill.outlet.folders import new_folder
from distill.outlet.label_sets import source_of
from pointsman.errors import ArtifactError, UserError
from pointsman.jobs.files import ArtifactStore
from pointsman.promotion.versions import StoredVersion

ADAPTER_CONFIG = "adapter/adapter_config.json"
SVF = "SVF"


@dataclass(frozen=True)
class ExportedRouter:
    """What was written. `measured` and `sourced` say whether the card could tell of an evaluation and of its data."""

    folder: Path
    files: tuple[str, ...]
    measured: bool
    sourced: bool


def export_router(
    connection: Connection,
    files: ArtifactStore,
    project: str,
    version: StoredVersion,
    folder: Path,
    stated: Mapping[str, str] | None = None,
) -> ExportedRouter:
    """Writes a classic or learned version. `UserError` for another kind, and where a file is missing."""
    source = _source(connection, files, project, version)
    evaluation = newest_evaluation(connection, project, version)
    with new_folder(folder) as place:
        if version.kind == "classic":
            _classic(version, files, place)
            config: dict[str, Any] = dict(version.config)
        elif version.kind == "learned":
            config = _learned(version, files, place)
        else:
            raise UserError(
                f"router version {version.id}: a {version.kind} router is no trained one; nothing to export"
            )
        names = sorted(str(file.relative_to(place)) for file in place.rglob("*") if file.is_file())
        card = router_card(version.id, version.kind, config, names, source, evaluation, stated or {})
        (place / "README.md").write_text(card, encoding="utf-8")
    return ExportedRouter(folder, (*names, "README.md"), evaluation is not None, source is not None)


def _source(connection: Connection, files: ArtifactStore, project: str, version: StoredVersion) -> Source | None:
    named = version.config.get("notes", {}).get("label_set")
    if named is None:
        return None
    try:
        row = find_labels(connection, project, named)
        return source_of(read_labels(connection, files, project, named), row.data_hash)
    except (UserError, ArtifactError):
        return None


def _classic(version: StoredVersion, files: ArtifactStore, place: Path) -> None:
    from harness.routing.classic_model import JSON_FILE, TENSOR_FILE

    try:
        (place / TENSOR_FILE).write_bytes(files.read(str(version.config["tensors"]), ".safetensors"))
    except ArtifactError as error:
        raise UserError(f"router version {version.id}: its tensors are not in the artifact store: {error}") from error
    write_json(place / JSON_FILE, version.config)


def _learned(version: StoredVersion, files: ArtifactStore, place: Path) -> dict[str, Any]:
    """The files, cleaned; what the JSON then says, and `svf` where the adapter is of that kind."""
    from distill.router_model.checkpoint import JSON_FILE
    from distill.server.models import fetched

    with tempfile.TemporaryDirectory() as cache:
        shutil.copytree(fetched(version, files, Path(cache)), place, dirs_exist_ok=True)
    content = read_json(place / JSON_FILE)
    content["config"]["name"] = _last_name(content["config"]["name"])
    svf = False
    if (place / ADAPTER_CONFIG).exists():
        adapter = read_json(place / ADAPTER_CONFIG)
        svf = adapter.get("peft_type") == SVF
        adapter["base_model_name_or_path"] = _last_name(adapter.get("base_model_name_or_path"))
        (place / ADAPTER_CONFIG).write_text(json.dumps(adapter, indent=2, sort_keys=True), encoding="utf-8")
        content["files"][ADAPTER_CONFIG] = file_hash(place / ADAPTER_CONFIG)
    content["notes"] = {**content["notes"], "exported_from": version.id}
    write_json(place / JSON_FILE, content)
    return {**content, "svf": svf}


def _last_name(name: Any) -> Any:
    """A path's last part; a hub's name, and None, as they are."""
    return Path(name).name if isinstance(name, str) and Path(name).is_absolute() else name
