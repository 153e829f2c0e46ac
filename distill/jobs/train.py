"""The runner of `train` jobs: a label set to a router version, classic or learned, with its files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from distill.files import read_json
from distill.jobs.found import StoredLabels, feature_folder, read_labels
from distill.jobs.releasing import release
from distill.labels.store import LabelSet
from harness.routing.classic_model import JSON_FILE, TENSOR_FILE, Method
from pointsman.jobs.context import JobContext
from pointsman.jobs.learning import Train
from pointsman.jobs.view import Artifact
from pointsman.words import RouterKind

CHECKPOINT = "checkpoint.safetensors"


def run(context: JobContext, params: Train) -> dict[str, Any]:
    """Trains; the result names the version and what it earned on validation rows."""
    with context.engine.connect() as connection:
        stored = read_labels(connection, context.place.files(), context.project_id, params.labels)
    folder = context.scratch / "router"
    with context.stage("train"):
        make = _classic if params.kind == "classic" else _learned
        told = make(context, params, stored.labels, folder)
    with context.stage("store"):
        identity = publish_router(context, params.kind, folder, stored, candidate=params.candidate)
    context.artifacts.remove(CHECKPOINT)
    for name, value in told.items():
        context.log(f"{name}: {value}")
    return {"router_version": identity, "kind": params.kind, "label_set": stored.id, **told}


def publish_router(
    context: JobContext,
    kind: RouterKind,
    folder: Path,
    stored: StoredLabels | None,
    *,
    candidate: bool,
    parent: str | None = None,
) -> str:
    """The files of a router's folder as artifacts, and its version; the id."""
    content = read_json(folder / (JSON_FILE if kind == "classic" else "learned.json"))
    names = [TENSOR_FILE] if kind == "classic" else list(content["files"])
    if stored is not None:
        content["notes"] = {**content["notes"], "label_set": stored.id}
    told = context.artifacts.put_bytes("router.json", json.dumps(content, sort_keys=True).encode())
    files: list[Artifact] = [told, *(context.artifacts.put_file(_flat(name), folder / name) for name in names)]
    return release(context, kind, content, files, candidate=candidate, parent=parent)


def _flat(name: str) -> str:
    return name.replace("/", " ")


def _classic(context: JobContext, params: Train, labels: LabelSet, folder: Path) -> dict[str, Any]:
    from distill.classic.choosing import choose
    from distill.classic.text_routers import write

    def progress(done: int, total: int) -> None:
        context.check()
        context.progress(done, total)

    method: Method | None = None if params.method == "auto" else params.method
    chosen = choose(labels, method, params.seed, progress)
    write(folder, replace(chosen.router, notes={**chosen.router.notes, "labels": labels.hash}))
    return {
        "method": chosen.method,
        "validation": {name: round(value, 4) for name, value in chosen.values.items()},
        "basis": chosen.basis,
        "not_tried": chosen.left_out,
    }


def _learned(context: JobContext, params: Train, labels: LabelSet, folder: Path) -> dict[str, Any]:
    from distill.router_model.backbone import load_backbone
    from distill.router_model.checkpoint import save_router
    from distill.router_model.fitting import FitConfig, backbone_of, fit_learned
    from distill.sft.loop import Epoch, SftConfig

    checkpoint = context.scratch / CHECKPOINT
    if context.artifacts.find(CHECKPOINT) is not None:
        checkpoint.write_bytes(context.artifacts.read(CHECKPOINT))
        context.log("goes on from the last epoch that was kept")

    def progress(epoch: Epoch) -> None:
        context.check()
        context.progress(epoch.number, params.epochs)
        context.metric("loss", epoch.number, epoch.loss)
        context.metric("held_out_reward", epoch.number, epoch.held_out_reward)
        if params.tuner != "none":  # a frozen backbone's epoch takes less time than to keep it
            context.artifacts.put_file(CHECKPOINT, checkpoint)

    backbone = load_backbone(backbone_of(params.backbone, params.revision))
    sft = SftConfig(
        learning_rate=params.learning_rate, epochs=params.epochs, keep_arms=params.keep_arms, seed=params.seed
    )
    config = FitConfig(params.head, params.tuner, params.layers, sft, seed=params.seed)
    cache = feature_folder(context.settings)
    fitted = fit_learned(labels, backbone, config, cache=cache, checkpoint=checkpoint, progress=progress)
    save_router(folder, fitted.router)
    return {
        "backbone": backbone.identity["backbone"],
        "commit": backbone.identity["commit"],
        "head": fitted.router.head.kind,
        "tuner": params.tuner,
        "validation": round(fitted.value, 4),
        "best_single": round(fitted.best_single, 4),
        "basis": fitted.basis,
        "epochs": len(fitted.log),
    }
