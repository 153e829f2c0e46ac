"""Routers that were trained, from their versions in the log: their numbers lie in the artifact store, by hash.

A classic version's configuration is its `router.json`, which names its tensors; it is computed here. A learned
version's is its `learned.json`; the router server computes it, this process only asks (`learned`).
"""

from __future__ import annotations

from harness.routing.base import Router, RouterVersion
from harness.routing.classic import ClassicRouter
from harness.routing.classic_model import model_of
from harness.routing.learned import LearnedRouter, socket_of
from pointsman.config import Config, Settings
from pointsman.errors import ArtifactError, UserError
from pointsman.promotion.versions import StoredVersion


def stored_router(version: StoredVersion, config: Config, settings: Settings) -> Router:
    """Raises `UserError` where the version cannot be had, or is of a kind that is not trained."""
    named = RouterVersion(version.kind, version.config, version.parent_id)
    if version.kind == "classic":
        return _classic(named, config, settings)
    if version.kind == "learned":
        return LearnedRouter(named, socket_of(settings.home))
    raise UserError(f"a {version.kind} router serves where [router] of the configuration declares it")


def _classic(version: RouterVersion, config: Config, settings: Settings) -> ClassicRouter:
    from pointsman.jobs.files import artifact_store

    tensors = version.config.get("tensors")
    if not isinstance(tensors, str):
        raise UserError("router version: expected the hash of its tensors")
    try:
        raw = artifact_store(settings, config.jobs.artifacts).read(tensors, ".safetensors")
    except ArtifactError as error:
        raise UserError(f"its tensors are not in the artifact store: {error}") from error
    return ClassicRouter(model_of(version.config, raw, f"router version {version.id}"), version)
