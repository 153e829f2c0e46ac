"""Learned versions in memory: found in the log by id, their files checked by hash, the last few kept."""

from __future__ import annotations

import json
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Engine

from distill.arrays import Floats
from distill.router_model.checkpoint import JSON_FILE, LearnedRouter, load_router
from pointsman.errors import ArtifactError, UserError
from pointsman.hashing import content_hash, text_hash
from pointsman.ids import content_id
from pointsman.jobs.files import ArtifactStore
from pointsman.promotion.versions import StoredVersion, in_state, versions_of

KEPT_STATES = 20_000
MODELS = 4
"""So many versions are kept: what serves, what it follows, a candidate, and one more."""
PRELOADED = 2


class Models:
    """Scores by version. Not for several threads at once."""

    def __init__(self, engine: Engine, files: ArtifactStore, folder: Path) -> None:
        self._engine, self._files, self._folder = engine, files, folder
        self._loaded: OrderedDict[str, LearnedRouter] = OrderedDict()
        self._states = StateCache(KEPT_STATES)

    def preload(self) -> list[str]:
        """Loads what may be asked for first: what serves, is on trial, or is the newest candidate. Their ids."""
        with self._engine.connect() as connection:
            found = in_state(connection, ["serving", "canary", "shadow", "candidate"], 50)
        learned = [version for version in found if version.kind == "learned"][:PRELOADED]
        for version in learned:
            self._router(version.id)
        return [version.id for version in learned]

    def scores(self, version: str, texts: list[str]) -> tuple[tuple[str, ...], Floats]:
        """The version's endpoints, and scores [texts, endpoints]. Raises `UserError` where it cannot be loaded."""
        import torch

        router = self._router(version)
        states = self._states.through(version, texts, router.states)
        with torch.inference_mode():
            read = torch.as_tensor(states).to(next(router.head.parameters()).device)
            found: Floats = router.head(read).float().cpu().numpy()
        return router.head.endpoints, found

    def _router(self, version: str) -> LearnedRouter:
        if version in self._loaded:
            self._loaded.move_to_end(version)
            return self._loaded[version]
        router = self._load(version)
        self._loaded[version] = router
        while len(self._loaded) > MODELS:
            self._loaded.popitem(last=False)
        return router

    def _load(self, version: str) -> LearnedRouter:
        with self._engine.connect() as connection:
            found = versions_of(connection, [version]).get(version)
        if found is None or found.kind != "learned":
            raise UserError(f"there is no learned router version {version}")
        device = "cuda" if _cuda() else "cpu"
        return load_router(fetched(found, self._files, self._folder), device=device)


def fetched(version: StoredVersion, files: ArtifactStore, folder: Path) -> Path:
    """A folder with the version's files, as `load_router` reads it. Raises `UserError` where one is missing."""
    digest = content_hash(version.config)
    if content_id("router_version", version.kind, digest) != version.id:
        raise UserError(f"router version {version.id}: its configuration was changed after it was made")
    place = folder / digest
    for name, expected in version.config["files"].items():
        target = place / name
        if not target.resolve().is_relative_to(place.resolve()):
            raise UserError(f"router version {version.id}: a file named {name!r}")
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            target.write_bytes(files.read(expected, Path(name).suffix))
        except ArtifactError as error:
            raise UserError(f"router version {version.id}: {name} is not in the artifact store: {error}") from error
    (place / JSON_FILE).write_text(json.dumps(version.config))
    return place


class StateCache:
    """States by version and text, the least lately used dropped: a repeated text costs no forward pass."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[str, str], Any] = OrderedDict()
        self.hits = 0

    def through(self, version: str, texts: list[str], encode: Any) -> Floats:
        keys = [(version, text_hash(text)) for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._kept}
        self.hits += len(texts) - len(missing)
        if missing:
            for key, row in zip(missing, encode(list(missing.values())), strict=True):
                self._kept[key] = row
        rows = []
        for key in keys:
            self._kept.move_to_end(key)
            rows.append(self._kept[key])
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return np.stack(rows)


def _cuda() -> bool:
    import torch

    return bool(torch.cuda.is_available())
